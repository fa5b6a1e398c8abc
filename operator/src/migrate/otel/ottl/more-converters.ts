// Converters with programs of several lines: patterns of grok, times cut to a unit, and the first of several values.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { seconds } from '../mapping.ts'
import { type Converter, textAt, valueAt } from './converter.ts'
import { constantText, constantTexts, required } from './editors.ts'
import { Unconvertible } from './syntax.ts'

/** Calls that convert a group of a pattern, by the type that the pattern names. */
const groupTypes: Readonly<Record<string, string>> = {
  int: 'to_int',
  long: 'to_int',
  float: 'to_float',
  double: 'to_float',
  bool: 'to_bool',
  boolean: 'to_bool',
}

const grokPart = /%\{(\w+)(?::([\w.]+))?(?::(\w+))?\}/g

/** A pattern with the texts of its own definitions in place of their names. */
function withDefinitions(pattern: string, definitions: readonly string[]): string {
  const texts = new Map(
    definitions.map((definition) => {
      const at = definition.indexOf('=')
      if (at < 0) throw new Unconvertible(`the definition \`${definition}\` has no \`=\``)
      return [definition.slice(0, at), definition.slice(at + 1)]
    }),
  )
  let expanded = pattern
  // A definition may contain others, but not itself.
  for (let round = 0; round <= texts.size; round++) {
    expanded = expanded.replace(grokPart, (whole, name: string, field?: string, type?: string) => {
      const text = texts.get(name)
      if (text === undefined) return whole
      if (type !== undefined) throw new Unconvertible(`\`${whole}\` gives a type to an own definition`)
      return field === undefined ? `(?:${text})` : `(?<${field}>${text})`
    })
  }
  return expanded
}

export const extractGrokPatterns: Converter = {
  becomes: '`parse_grok`; only named groups become fields, and empty ones do not',
  parameters: ['target', 'pattern', 'namedCapturesOnly', 'patternDefinitions'],
  run: (program, lines, values) => {
    const given = constantText(values, 'pattern').replaceAll('(?P<', '(?<')
    const definitions = values.has('patternDefinitions') ? constantTexts(values, 'patternDefinitions') : []
    const pattern = withDefinitions(
      given,
      definitions.map((text) => text.replaceAll('(?P<', '(?<')),
    )
    const named = values.get('namedCapturesOnly')
    if (named?.type !== 'literal' || named.value !== true) {
      program.note(
        'without `true` as third argument, the collector also sets a field for each pattern without a name, such as `IPV4` inside `%{IP:client}`',
        'Nothing, unless you use these fields: name them in the pattern.',
      )
    }
    const text = textAt(program, lines, values)
    const name = lines.newName('grok')
    lines.add(
      `${name} = parse_grok(${text}, ${textLiteral(pattern)}) ?? {}`,
      `${name} = filter(${name}) -> |_key, value| { value != "" }`,
    )
    for (const [, , field, type] of pattern.matchAll(grokPart)) {
      if (field === undefined || type === undefined || type === 'string') continue
      const call = Object.hasOwn(groupTypes, type) ? groupTypes[type] : undefined
      if (call === undefined) throw new Unconvertible(`the type \`${type}\` is unknown`)
      const at = `${name}${fieldLiteral([field])}`
      if (call === 'to_float') program.hasFloats = true
      lines.add('made = null', 'error = null', `if exists(${at}) { made, error = ${call}(${at}) }`)
      lines.open('error == null')
      lines.add(`if exists(${at}) { ${at} = made }`)
    }
    return { code: name, kind: 'map' }
  },
}

/** Nanoseconds from year 1, from which the collector counts units, to 1970. */
const sinceYearOne = 62_135_596_800_000_000_000n

export const truncateTime: Converter = {
  becomes: '`from_unix_timestamp` of a multiple of a literal `Duration`',
  parameters: ['time', 'duration'],
  run: (program, lines, values) => {
    const node = required(values, 'duration')
    const [argument] = node.type === 'call' && node.name === 'Duration' ? node.values : []
    const text = argument?.value.type === 'literal' ? String(argument.value.value) : undefined
    const length = seconds(text)
    if (length === undefined || length <= 0) throw new Unconvertible('the unit must be a literal `Duration`')
    const unit = BigInt(Math.round(length * 1e9))
    const time = lines.as(valueAt(program, lines, values, 'time'), 'time')
    const number = lines.keep({ code: `to_unix_timestamp(${time.code}, unit: "nanoseconds")`, kind: 'integer' }).code
    const rest = `mod(${number} + ${sinceYearOne % unit}, ${unit})`
    return lines.fallible(`from_unix_timestamp(${number} - ${rest}, unit: "nanoseconds")`, 'time')
  },
}

export const coalesce: Converter = {
  becomes: '`if` for each value',
  parameters: ['values'],
  run: (program, lines, values) => {
    const list = required(values, 'values')
    if (list.type !== 'list') throw new Unconvertible('the argument must be a literal list')
    const name = lines.newName('first')
    lines.add(`${name} = null`)
    for (const item of list.items) {
      const own = program.newLines()
      const { code, kind } = program.value(item, own)
      if (kind === 'null') continue
      if (!own.isOpen) {
        lines.add(...own.text(), `if ${name} == null { ${name} = ${code} }`)
        continue
      }
      // A value that fails counts only if all values before it are missing.
      const isDone = lines.newName('done')
      own.add(`${name} = ${code}`, `${isDone} = true`)
      lines.add(`${isDone} = ${name} != null`, `if !${isDone} {`, ...own.text().map((line) => `  ${line}`), '}')
      lines.require(isDone, true)
    }
    return { code: name, kind: 'any' }
  },
}

/** Variants of Base64, with the arguments of `encode_base64`. */
const variants: Readonly<Record<string, string>> = {
  base64: '',
  'base64-raw': ', padding: false',
  'base64-url': ', charset: "url_safe"',
  'base64-raw-url': ', padding: false, charset: "url_safe"',
}

export const base64Encode: Converter = {
  becomes: '`encode_base64`',
  parameters: ['value', 'variant'],
  run: (program, lines, values) => {
    const variant = values.has('variant') ? constantText(values, 'variant') : 'base64'
    const options = Object.hasOwn(variants, variant) ? variants[variant] : undefined
    if (options === undefined) throw new Unconvertible(`the variant \`${variant}\` is unknown`)
    return { code: `encode_base64(${textAt(program, lines, values, 'value')}${options})`, kind: 'text' }
  },
}
