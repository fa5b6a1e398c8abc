// Parsers of Fluent Bit as pieces of programs: a text is parsed into `parsed`, and the time of the event is set from it.

import { textLiteral } from '@penstock/agent/config'
import type { Context } from './plugin.ts'
import { type Entry, entriesOf, isOn, lastValue, type Place, type Section } from './sections.ts'
import { pattern } from './text.ts'

const place = { file: 'parsers.conf', line: 1 }
const builtIn = (name: string, options: Readonly<Record<string, string>>): Section => ({
  ...place,
  kind: 'parser',
  entries: Object.entries({ name, ...options }).map(([key, value]): Entry => ({ ...place, key, value })),
})
const webTime = { time_key: 'time', time_format: '%d/%b/%Y:%H:%M:%S %z' }

/** Parsers of the file that Fluent Bit ships, where the configuration does not bring them along. */
export const shipped: ReadonlyMap<string, Section> = new Map<string, Section>([
  ['json', builtIn('json', { format: 'json' })],
  ['logfmt', builtIn('logfmt', { format: 'logfmt' })],
  [
    'nginx',
    builtIn('nginx', {
      format: 'regex',
      regex:
        '^(?<remote>[^ ]*) (?<host>[^ ]*) (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] "(?<method>\\S+)(?: +(?<path>[^\\"]*?)(?: +\\S*)?)?" (?<code>[^ ]*) (?<size>[^ ]*)(?: "(?<referer>[^\\"]*)" "(?<agent>[^\\"]*)")',
      ...webTime,
    }),
  ],
  [
    'apache2',
    builtIn('apache2', {
      format: 'regex',
      regex:
        '^(?<host>[^ ]*) [^ ]* (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] "(?<method>\\S+)(?: +(?<path>[^ ]*) +\\S*)?" (?<code>[^ ]*) (?<size>[^ ]*)(?: "(?<referer>[^\\"]*)" "(?<agent>.*)")?$',
      ...webTime,
    }),
  ],
])

export function findParser(name: string, context: Context): Section | undefined {
  return context.parsers.get(name) ?? shipped.get(name)
}

const known = new Set(['name', 'format', 'regex', 'time_key', 'time_format', 'time_keep', 'types', 'skip_empty_values'])

const conversions: Readonly<Record<string, string>> = {
  integer: 'to_int',
  float: 'to_float',
  bool: 'to_bool',
  string: 'to_string',
}

/**
 * Lines that parse the text `from`: afterwards `parsed` is an object, or null if the text does not match. Undefined if the parser
 * cannot be converted, which is reported.
 */
export function parserLines(name: string, from: string, context: Context, at: Place): string[] | undefined {
  const parser = findParser(name, context)
  if (parser === undefined) {
    const nearest = 'Convert the file with the parser, too, or write a remap transform that parses the text.'
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
    ltsv: `parse_key_value(${from}, key_value_delimiter: ":", field_delimiter: "\\t")`,
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
  const lines = [`parsed = ${call} ?? null`, 'if is_object(parsed) {']
  if (format === 'regex' && isOn(lastValue(parser, 'skip_empty_values'), true)) {
    lines.push('  parsed = filter(object!(parsed)) -> |_key, value| { value != null && value != "" }')
  }
  for (const type of entriesOf(parser, 'types').flatMap((entry) => entry.value.split(/[\s,]+/))) {
    const [key = '', wanted = ''] = type.split(':')
    const convert = Object.hasOwn(conversions, wanted) ? conversions[wanted] : undefined
    if (convert === undefined)
      context.gap(
        parser,
        `parser ${name}: types`,
        `the type \`${wanted}\` has no counterpart`,
        'Convert the field in a remap transform.',
      )
    else
      lines.push(
        `  if exists(parsed.${textLiteral(key)}) { parsed.${textLiteral(key)} = ${convert}(parsed.${textLiteral(key)}) ?? parsed.${textLiteral(key)} }`,
      )
  }
  lines.push(...timeLines(parser).map((line) => `  ${line}`), '}')
  return lines
}

/** Sets the time of the event, and keeps a field `timestamp` of the text apart from it. */
function timeLines(parser: Section): string[] {
  const key = lastValue(parser, 'time_key')
  const format = lastValue(parser, 'time_format')
  const apart = 'if exists(parsed.timestamp) { parsed.log_timestamp = del(parsed.timestamp) }'
  if (format === undefined) return [apart]
  const at = `parsed.${textLiteral(key ?? 'time')}`
  const chrono = format.replaceAll('.%L', '%.f').replaceAll('%L', '%f')
  return [
    `time, error = parse_timestamp(${at}, ${textLiteral(chrono)})`,
    'if error == null { .timestamp = time }',
    ...(isOn(lastValue(parser, 'time_keep'), false) ? [] : [`del(${at})`]),
    apart,
  ]
}
