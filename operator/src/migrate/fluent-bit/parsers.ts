// Converts Fluent Bit parsers to parts of programs that parse a text into `parsed` and set the time of the event.

import { textLiteral } from '@penstock/agent/config'
import { apart, reportParsedTime } from './own-time.ts'
import { timeLines } from './parsed-time.ts'
import type { Context } from './plugin.ts'
import { entriesOf, isOn, lastValue, type Place, type Section } from './sections.ts'
import { shipped } from './shipped.ts'
import { pattern } from './text.ts'

export function findParser(name: string, context: Context): Section | undefined {
  return context.parsers.get(name) ?? shipped.get(name)
}

const known = new Set([
  ...['name', 'format', 'regex', 'time_key', 'time_format', 'time_keep', 'time_offset', 'time_system_timezone'],
  ...['types', 'skip_empty_values', 'decode_field', 'decode_field_as', 'logfmt_no_bare_keys', 'time_strict'],
])

/** The options of other agents' parsers that Fluent Bit lacks. */
export interface Dialect {
  /** Texts that are read as true; all others are false. */
  readonly truths: readonly string[]
  /** The default time zone: an offset or a name. If undefined, the zone of the agent. */
  readonly zone: string | undefined
  /** The delimiters between members, and between name and value. */
  readonly members?: { readonly pattern?: string | undefined; readonly delimiter: string; readonly label: string }
}

/** Reads the digits at the start of a text, as C and Ruby do; zero if there are none. */
const digits: Readonly<Record<string, readonly [string, string]>> = {
  integer: ['[-+]?\\d+', 'to_int(found.digits) ?? 0'],
  int: ['[-+]?\\d+', 'to_int(found.digits) ?? 0'],
  hex: ['(?:0[xX])?[0-9a-fA-F]+', 'parse_int(replace(string(found.digits) ?? "", r\'^0[xX]\', ""), 16) ?? 0'],
  float: ['[-+]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][-+]?\\d+)?', 'to_float(found.digits) ?? 0.0'],
}

/** Lines that convert a field; undefined for an unknown type. `array` may name the delimiter of its items. */
function conversion(
  key: string,
  type: string,
  sign: string | undefined,
  truths: readonly string[] | undefined,
): string[] | undefined {
  const at = `parsed.${textLiteral(key)}`
  const text = `to_string(${at}) ?? ""`
  const number = Object.hasOwn(digits, type) ? digits[type] : undefined
  if (number !== undefined) {
    const [regex, call] = number
    const find = `found = parse_regex(${text}, r'^\\s*(?P<digits>${regex})') ?? {}`
    return [`if ${at} != null {`, `  ${find}`, `  ${at} = ${call}`, '}']
  }
  if (type === 'bool' && truths === undefined) {
    // Only the beginning counts. Other texts stay.
    const begins = (truth: boolean) => `if starts_with(word, "${truth}") { ${at} = ${truth} }`
    return [`word = downcase(${text})`, `${begins(true)} else ${begins(false)}`]
  }
  const calls: Readonly<Record<string, string>> = {
    bool: `includes(${JSON.stringify(truths)}, downcase(${text}))`,
    string: `to_string(${at}) ?? ${at}`,
    array: `split(${text}, ${textLiteral(sign ?? ',')})`,
  }
  const call = Object.hasOwn(calls, type) ? calls[type] : undefined
  return call === undefined ? undefined : [`if ${at} != null { ${at} = ${call} }`]
}

/** Whether the fields of a parser may have the name of the event's time. */
function mayHaveOwnTime(parser: Section, format: string): boolean {
  const isTime = lastValue(parser, 'time_key') === 'timestamp' && lastValue(parser, 'time_format') !== undefined
  if (isTime && !isOn(lastValue(parser, 'time_keep'), false)) return false
  return format === 'regex' ? /\(\?<timestamp>/.test(lastValue(parser, 'regex') ?? '') : true
}

/**
 * Lines that parse the text `from`. Afterwards `parsed` is an object, or null if the text does not match. Reports a gap and returns
 * undefined if the parser cannot be converted.
 */
export function parserLines(
  name: string,
  from: string,
  context: Context,
  at: Place,
  dialect?: Dialect,
): string[] | undefined {
  const parser = findParser(name, context)
  if (parser === undefined) {
    const nearest = 'Convert the file with the parser too, or write a remap transform that parses the text.'
    context.gap(at, `parser ${name}`, 'the configuration does not define the parser', nearest)
    return undefined
  }
  const format = (lastValue(parser, 'format') ?? '').toLowerCase()
  for (const entry of parser.entries) {
    if (known.has(entry.key)) continue
    context.gap(
      entry,
      `parser ${name}: ${entry.key}`,
      `the option \`${entry.key}\` has no counterpart`,
      'Change the fields in a remap transform after the parser.',
    )
  }
  const functions: Readonly<Record<string, string>> = {
    json: `parse_json(${from})`,
    logfmt: `parse_logfmt(${from})`,
    ltsv: membersCall(from, dialect?.members ?? { delimiter: '\t', label: ':' }),
    regex: `parse_grok(${from}, ${pattern(lastValue(parser, 'regex') ?? '')})`,
  }
  const call = Object.hasOwn(functions, format) ? functions[format] : undefined
  if (call === undefined) {
    context.gap(
      parser,
      `parser ${name}`,
      `the format \`${format}\` has no counterpart`,
      'Use parse_json, parse_logfmt, parse_key_value or parse_grok in a remap transform.',
    )
    return undefined
  }
  if (mayHaveOwnTime(parser, format)) reportParsedTime(at, context)
  const lines = [`parsed = ${call} ?? null`]
  if (format === 'logfmt' && isOn(lastValue(parser, 'logfmt_no_bare_keys'), false)) {
    lines.push('for_each(object(parsed) ?? {}) -> |_key, value| { if value == true { parsed = null } }')
  }
  lines.push('if is_object(parsed) {')
  if (format === 'regex' && isOn(lastValue(parser, 'skip_empty_values'), true)) {
    lines.push('  parsed = filter(object!(parsed)) -> |_key, value| { value != null && value != "" }')
  }
  lines.push(...fieldLines(name, parser, context, dialect).map((line) => `  ${line}`), '}')
  return lines
}

/** Lines that process `parsed`: they convert fields, and set the time of the event. */
export function fieldLines(name: string, parser: Section, context: Context, dialect?: Dialect): string[] {
  const lines: string[] = []
  // The parser of JSON keeps the types of the text.
  const isTyped = dialect !== undefined || lastValue(parser, 'format')?.toLowerCase() !== 'json'
  const types = isTyped ? entriesOf(parser, 'types') : []
  for (const type of types.flatMap((entry) => entry.value.split(/[\s,]+(?=[^\s:]+:)|\s+/))) {
    const [key = '', wanted = '', ...sign] = type.split(':')
    const converted = conversion(
      key,
      wanted.toLowerCase(),
      sign.length === 0 ? undefined : sign.join(':'),
      dialect?.truths,
    )
    if (converted === undefined)
      context.gap(
        parser,
        `parser ${name}: types`,
        `the type \`${wanted}\` has no counterpart`,
        'Convert the field in a remap transform.',
      )
    else lines.push(...converted)
  }
  const rules =
    dialect === undefined
      ? { zone: zoneOf(parser), ignoresRest: true }
      : { zone: dialect.zone, ignoresRest: false, isStrict: true }
  return [...lines, ...decodingLines(parser, 'parsed', context), ...timeLines(parser, rules)]
}

/**
 * Decodes texts within fields. A JSON value replaces its text, or its members are added to the other fields.
 * @param root the object with the fields; empty for the root of the event
 */
export function decodingLines(parser: Section, root: string, context: Context): string[] {
  const entries = parser.entries.filter(({ key }) => key === 'decode_field' || key === 'decode_field_as')
  return entries.flatMap((entry) => {
    const [decoder = '', field = ''] = entry.value.trim().split(/\s+/)
    const at = `${root}.${textLiteral(field)}`
    const text = `string(${at}) ?? ""`
    // Texts from JSON have already been unescaped together with their line.
    if (/^escaped/.test(decoder) && root === '') return []
    if (/^escaped/.test(decoder)) {
      return [`decoded = parse_json("\\"" + (${text}) + "\\"") ?? null`, `if is_string(decoded) { ${at} = decoded }`]
    }
    if (decoder === 'json') {
      const whole = root === '' ? '.' : root
      const find = `decoded = parse_json(${text}) ?? null`
      if (entry.key === 'decode_field_as') return [find, `if is_object(decoded) { ${at} = decoded }`]
      if (root === '') reportParsedTime(entry, context)
      const own = root === '' ? [`  ${apart('decoded')}`] : []
      return [find, 'if is_object(decoded) {', ...own, `  ${whole} = merge(object!(${whole}), object!(decoded))`, '}']
    }
    context.gap(
      entry,
      `${entry.key} ${decoder}`,
      `the decoder \`${decoder}\` has no counterpart`,
      'Decode the field in a remap transform after the parser.',
    )
    return []
  })
}

/** Fluent Bit reads times without a zone as UTC. */
function zoneOf(parser: Section): string | undefined {
  if (isOn(lastValue(parser, 'time_system_timezone'), false)) return undefined
  return lastValue(parser, 'time_offset') ?? 'UTC'
}

function membersCall(from: string, { pattern: between, delimiter, label }: NonNullable<Dialect['members']>): string {
  const text = between === undefined ? from : `replace(${from}, r'${between.replaceAll("'", "\\'")}', "\t")`
  const sign = between === undefined ? delimiter : '\t'
  return `parse_key_value(${text}, key_value_delimiter: ${textLiteral(label)}, field_delimiter: ${textLiteral(sign)})`
}
