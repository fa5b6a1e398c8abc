// The stage `logfmt`. The old agents read a line up to its first error, such as a quotation mark inside of a word, and a key without a value is
// empty. `parse_logfmt` is more tolerant, so that it finds other fields in such lines.

import { fieldLiteral } from '@penstock/agent/config'
import { option, textIn } from './context.ts'
import { extracted } from './fields.ts'
import { type Lines, onSource, pattern, type Stage } from './stage.ts'
import { pairsOf } from './tree.ts'

const sign = '[^\\x00-\\x20="]'
const blank = '[\\x00-\\x20]'
const quoted = '(?:[^"\\\\\\n]|\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*'
/** The part of a line before the first error. */
const valid = `^(?P<line>(?:${blank}*${sign}+(?:="${quoted}"|=${sign}*(?:${blank}|$)|${blank}|$))*)`
const pair = `(?P<key>${sign}+)(?:="(?P<quoted>${quoted})"|=(?P<plain>${sign}*))?`

/** Sets `parsed` to the texts of a line by key. The last of several counts. */
const parsing = (subject: string): Lines => [
  `found = parse_regex(${subject}, r'${valid}') ?? {}`,
  `pairs = parse_regex_all(string(found.line) ?? "", r'${pair}') ?? []`,
  'parsed = {}',
  'for_each(pairs) -> |_index, pair| {',
  '  quoted = pair.quoted || ""',
  '  value = pair.plain || ""',
  '  if quoted != "" { value = string(parse_json("\\"" + quoted + "\\"") ?? quoted) ?? "" }',
  '  parsed = set!(parsed, [pair.key], value)',
  '}',
]

export const logfmt: Stage = {
  name: 'logfmt',
  becomes: '`parse_regex_all`, up to the first error in the line',
  options: {
    mapping: 'fields of the parsed line',
    regex: 'a pattern for the names of further fields, in Alloy',
    source: 'the value to parse',
  },
  build: (part, scope) => {
    const mapping = pairsOf(option(part, 'mapping')).map(([name, key]) => [name, key === '' ? name : key] as const)
    const mapped = mapping.map(([name, key]) => {
      const field = `parsed${fieldLiteral([key])}`
      return `if exists(${field}) { ${extracted(name)} = string!(${field}) }`
    })
    const lines = (more: Lines) =>
      onSource(textIn(part, 'source'), (subject) => [...parsing(subject), ...mapped, ...more])
    const names = textIn(part, 'regex') ?? ''
    if (names === '') return lines([])
    return pattern(part, scope, names, (literal) =>
      lines([
        `found = filter(parsed) -> |name, _value| { match(name, ${literal}) }`,
        '.extracted = merge(object!(.extracted), found)',
      ]),
    )
  },
}
