// Parsers of Fluentd as pieces of programs: a text is parsed into `parsed`, and the time of the event is set from it.

import { textLiteral } from '@penstock/agent/config'
import type { Gap } from '../draft.ts'
import { parserLines } from '../fluent-bit/parsers.ts'
import { Context } from '../fluent-bit/plugin.ts'
import { type Entry, isOn, lastValue, type Section } from '../fluent-bit/sections.ts'
import { childrenOf, listOf, type Plugged, sectionOf } from './element.ts'
import type { Element } from './syntax.ts'

const webLine = '(?<host>[^ ]*) [^ ]* (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] "(?<method>\\S+)(?: +(?<path>'
const webTime = '%d/%b/%Y:%H:%M:%S %z'

interface Known {
  readonly regex: string
  readonly time: string
  readonly types?: string
}

/** Formats that Fluentd brings along, as the expressions that stand for them. */
const formats: Readonly<Record<string, Known>> = {
  nginx: {
    regex:
      '^(?<remote>[^ ]*) (?<host>[^ ]*) (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] "(?<method>\\S+)(?: +(?<path>[^\\"]*?)(?: +\\S*)?)?" (?<code>[^ ]*) (?<size>[^ ]*)(?: "(?<referer>[^\\"]*)" "(?<agent>[^\\"]*)"(?:\\s+"?(?<http_x_forwarded_for>[^ "]*)"?)?)?$',
    time: webTime,
  },
  apache2: {
    regex: `^${webLine}(?:[^\\"]|\\\\.)*?)(?: +\\S*)?)?" (?<code>[^ ]*) (?<size>[^ ]*)(?: "(?<referer>(?:[^\\"]|\\\\.)*)" "(?<agent>(?:[^\\"]|\\\\.)*)")?$`,
    time: webTime,
    types: 'code:integer,size:integer',
  },
  apache: {
    regex: `^${webLine}[^ ]*) +\\S*)?" (?<code>[^ ]*) (?<size>[^ ]*)(?: "(?<referer>[^\\"]*)" "(?<agent>[^\\"]*)")?$`,
    time: webTime,
  },
  apache_error: {
    regex:
      '^\\[[^ ]* (?<time>[^\\]]*)\\] \\[(?<level>[^\\]]*)\\](?: \\[pid (?<pid>[^\\]]*)\\])?( \\[client (?<client>[^\\]]*)\\])? (?<message>.*)$',
    time: '%b %d %H:%M:%S%.f %Y',
  },
  syslog: {
    regex:
      '^(?:\\<(?<pri>[0-9]+)\\>)?(?<time>[^ ]* {1,2}[^ ]* [^ ]*) (?<host>[^ ]*) (?<ident>[^ :\\[]*)(?:\\[(?<pid>[0-9]+)\\])?(?:[^\\:]*\\:)? *(?<message>.*)$',
    time: '%b %d %H:%M:%S',
  },
}

/** Options of `<parse>` that are read, for every plugin that has one. */
export const parseOptions: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ['@type', "`parse_json`, `parse_grok` (in Ruby's dialect), `parse_csv`, `parse_key_value`"],
    ['type', 'as `@type`'],
    ['expression', 'the expression'],
    ['format', 'as `@type` and `expression`'],
    ['time_key', 'the field of the time'],
    ['time_type', 'how the time is written'],
    ['time_format', 'how the time is written'],
    ['keep_time_key', 'whether the field of the time stays'],
    ['types', 'conversions of fields'],
    ['keys', 'the names of columns'],
    ['delimiter', 'between columns'],
    ['delimiter_pattern', 'between members'],
    ['label_delimiter', 'between name and value'],
    ['format_firstline', '`multiline` of the source'],
    ...Array.from({ length: 9 }, (_, index) => [`format${index + 1}`, 'the expression']),
  ].flatMap(([name, becomes]) => [[`parse.${name}`, becomes as string] as const]),
)

/** Options of `<parse>` whose work is done in another way. */
export const parseItself: Readonly<Record<string, string>> = {
  'parse.null_value_pattern': 'empty values are left out',
  'parse.null_empty_string': 'empty values are left out',
  'parse.estimate_current_event': 'an event without a time has that at which it was read',
  'parse.json_parser': 'there is one parser',
  'parse.stream_buffer_size': 'there is one parser',
  'parse.utc': 'times without a zone are in UTC',
  'parse.message_format': 'the form of the line is found',
  'parse.with_priority': 'the priority is read if it is there',
  'parse.timeout': 'expressions take linear time',
  'parse.merge_cri_fields': 'the source has the fields of the runtime beside the line',
  'parse.unmatched_lines': 'lines that do not match keep their text',
}

/**
 * Lines that parse the text `from`: afterwards `parsed` is an object, or null if the text does not match. Undefined if that cannot be
 * converted, which is reported.
 * @param prefix of the names of options
 */
function parsing(section: Section, prefix: string, from: string, context: Context, gaps: Gap[]): string[] | undefined {
  const read = (key: string) => lastValue(section, `${prefix}${key}`)
  const stated = read('@type') ?? read('type') ?? read('format') ?? 'json'
  const isExpression = stated.startsWith('/')
  const type = isExpression ? 'regexp' : stated.toLowerCase()
  const known = Object.hasOwn(formats, type) ? formats[type] : undefined
  const isOther =
    known === undefined && !['json', 'regexp', 'ltsv', 'logfmt', 'none', 'csv', 'tsv', 'multiline'].includes(type)
  if (isOther) {
    context.gap(
      section,
      `parser ${type}`,
      `the format \`${type}\` has no counterpart`,
      'Use parse_json, parse_regex, parse_grok or another parser in a remap transform.',
    )
    return undefined
  }
  if (type === 'none') return [`parsed = { "message": ${from} }`]
  if (type === 'csv' || type === 'tsv') return columns(section, prefix, from, type)
  const expression =
    known?.regex ??
    (type === 'multiline'
      ? Array.from({ length: 9 }, (_, index) =>
          (read(`format${index + 1}`) ?? '').replace(/^\/(.*)\/[imx]*$/s, '$1'),
        ).join('')
      : isExpression
        ? stated
        : (read('expression') ?? ''))
  const format = { json: 'json', ltsv: 'ltsv', logfmt: 'logfmt' }[type] ?? 'regex'
  const timeFormat = known?.time ?? read('time_format')
  const timeKey = read('time_key') ?? 'time'
  const options: Record<string, string | undefined> = {
    name: type,
    format,
    regex: format === 'regex' ? expression : undefined,
    time_key: timeKey,
    time_format: timeFormat === undefined ? undefined : rubyTime(timeFormat),
    time_keep: isOn(read('keep_time_key'), false) ? 'on' : 'off',
    types: read('types')?.replaceAll(/\s*,\s*/g, ' ') ?? known?.types?.replaceAll(',', ' '),
  }
  const entries = Object.entries(options).flatMap(([key, value]): Entry[] =>
    value === undefined ? [] : [{ file: section.file, line: section.line, key, value }],
  )
  const parser: Section = { kind: 'parser', file: section.file, line: section.line, entries }
  const lines = parserLines(type, from, new Context([parser], gaps), section)
  if (lines === undefined || timeFormat !== undefined || format === 'regex') return lines
  return [...lines, ...secondsOf(timeKey, isOn(read('keep_time_key'), false))]
}

/** The time as seconds since 1970, where a field has it so. */
function secondsOf(key: string, isKept: boolean): string[] {
  const at = `parsed.${textLiteral(key)}`
  return [
    `if is_object(parsed) && (is_integer(${at}) || is_float(${at})) {`,
    `  .timestamp = from_unix_timestamp(to_int(to_float!(${at}) * 1000.0), unit: "milliseconds") ?? .timestamp`,
    ...(isKept ? [] : [`  del(${at})`]),
    '}',
  ]
}

/** Items of Ruby's `strftime` that have other names. */
function rubyTime(format: string): string {
  if (format === '%iso8601') return '%+'
  return format
    .replaceAll(/\.%[369]?N/g, '%.f')
    .replaceAll(/%[369]?N/g, '%f')
    .replaceAll('%:z', '%:z')
}

function columns(section: Section, prefix: string, from: string, type: 'csv' | 'tsv'): string[] {
  const keys = listOf(lastValue(section, `${prefix}keys`))
  const delimiter = lastValue(section, `${prefix}delimiter`) ?? (type === 'csv' ? ',' : '\t')
  const fields = keys.map((key, index) => `${textLiteral(key)}: columns[${index}]`)
  return [
    `columns = parse_csv(${from}, delimiter: ${textLiteral(delimiter)}) ?? []`,
    `parsed = if length(columns) == ${keys.length} { { ${fields.join(', ')} } } else { null }`,
  ]
}

/** Alternatives of `multi_format`, each with its own options; the section itself for other formats. */
export function alternatives(section: Plugged): readonly { readonly section: Section; readonly prefix: string }[] {
  const [parse] = childrenOf(section.element, 'parse')
  const patterns: readonly Element[] = parse === undefined ? [] : childrenOf(parse, 'pattern')
  if (patterns.length === 0) return [{ section, prefix: 'parse.' }]
  return patterns.map((pattern) => ({ section: sectionOf(pattern), prefix: '' }))
}

/** Lines for all alternatives: the first that matches counts. Undefined if none can be converted. */
export function parsedBy(section: Plugged, from: string, context: Context, gaps: Gap[]): string[] | undefined {
  const all = alternatives(section).flatMap(({ section: each, prefix }) => {
    const lines = parsing(each, prefix, from, context, gaps)
    return lines === undefined ? [] : [lines]
  })
  if (all.length === 0) return undefined
  return [
    'parsed = null',
    ...all.flatMap((lines, index) =>
      index === 0 ? lines : ['if !is_object(parsed) {', ...lines.map((line) => `  ${line}`), '}'],
    ),
  ]
}
