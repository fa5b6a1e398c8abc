// The processor that splits a text at fixed delimiters.

import { textLiteral } from '@penstock/agent/config'
import { flagIn, type Part, type Report, textIn } from '../loki/context.ts'
import { regexLiteral } from '../otel/text.ts'
import { fieldOf, textOfField } from './conditions.ts'
import { type Processor, quiet, when } from './processor.ts'

interface Key {
  readonly name: string
  /** Further parts with the same name are appended after their delimiter. */
  readonly isAdded: boolean
  readonly before: string
  readonly type: string | undefined
}

const types: Readonly<Record<string, (value: string) => string>> = {
  integer: (value) => `to_int(${value}) ?? ${value}`,
  long: (value) => `to_int(${value}) ?? ${value}`,
  float: (value) => `to_float(${value}) ?? ${value}`,
  double: (value) => `to_float(${value}) ?? ${value}`,
  boolean: (value) => `to_bool(${value}) ?? ${value}`,
  string: (value) => value,
  ip: (value) => value,
}

export const dissect: Processor = {
  name: 'dissect',
  becomes: '`parse_regex`',
  options: {
    ...when,
    tokenizer: 'the expression',
    field: 'the field with the text',
    target_prefix: 'the object for the parts',
    overwrite_keys: 'whether to replace existing fields',
    trim_values: 'white space at the ends',
  },
  itself: { ...quiet, trim_chars: 'white space' },
  build: (part, report) => {
    const found = keysOf(part, report)
    if (found === undefined) return undefined
    const { keys, expression } = found
    const prefix = textIn(part, 'target_prefix') ?? 'dissect'
    const trims = /all|right|left/.test(textIn(part, 'trim_values') ?? 'none')
    const values = new Map<string, { value: string; type: string | undefined }>()
    for (const [index, { name, isAdded, before, type }] of keys.entries()) {
      const text = `(string(parts."${index + 1}") ?? "")`
      const value = trims ? `strip_whitespace(${text})` : text
      const earlier = values.get(name)
      if (isAdded && earlier !== undefined)
        values.set(name, { ...earlier, value: `${earlier.value} + ${textLiteral(before)} + ${value}` })
      else values.set(name, { value, type })
    }
    const target = (name: string) => fieldOf(prefix === '' ? name : `${prefix}.${name}`)
    // Without `overwrite_keys`, one existing field leaves the event unchanged.
    const free =
      flagIn(part, 'overwrite_keys') === true ? [] : [...values.keys()].map((name) => `!exists(${target(name)})`)
    return [
      `parts, error = parse_regex(${textOfField(textIn(part, 'field') ?? 'message')}, ${regexLiteral(`(?s)^${expression}$`)}, numeric_groups: true)`,
      `if ${['error == null', ...free].join(' && ')} {`,
      ...[...values].map(
        ([name, { value, type }]) => `  ${target(name)} = ${(types[type ?? 'string'] ?? String)(`(${value})`)}`,
      ),
      '}',
    ]
  },
}

/** The keys of a tokenizer, and a regular expression with a group for each. Reports a gap and returns undefined for indirect keys. */
function keysOf(part: Part, report: Report): { keys: Key[]; expression: string } | undefined {
  const tokenizer = textIn(part, 'tokenizer') ?? ''
  const keys: Key[] = []
  let expression = ''
  let at = 0
  for (const found of tokenizer.matchAll(/%\{([^}]*)\}/g)) {
    const [, sign = '', key = '', , type, padding = ''] =
      /^([+*&?]?)(.*?)(\/\d+)?(?:\|(\w+))?(->)?$/.exec(found[1] ?? '') ?? []
    const before = tokenizer.slice(at, found.index)
    if (
      sign === '*' ||
      sign === '&' ||
      /\/\d+/.test(found[1] ?? '') ||
      (type !== undefined && !Object.hasOwn(types, type))
    ) {
      report.gap(
        part,
        `dissect: %{${found[1]}}`,
        'keys that come from the text, or that change the order of parts, have no counterpart',
        'Use `parse_regex` instead.',
      )
      return undefined
    }
    const isSkipped = sign === '?' || key === ''
    const isLast = found.index + found[0].length === tokenizer.length
    expression += `${RegExp.escape(before)}${isSkipped ? '' : '('}${isLast ? '.*' : '.*?'}${isSkipped ? '' : ')'}`
    if (padding !== '') expression += '\\s*'
    if (!isSkipped) keys.push({ name: key, isAdded: sign === '+', before, type })
    at = found.index + found[0].length
  }
  return { keys, expression: expression + RegExp.escape(tokenizer.slice(at)) }
}
