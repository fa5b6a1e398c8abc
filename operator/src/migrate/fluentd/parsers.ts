// Converts Fluentd parsers to parts of programs that parse a text into `parsed` and set the time of the event.

import { textLiteral } from '@penstock/agent/config'
import type { Gap } from '../draft.ts'
import { reportParsedTime } from '../fluent-bit/own-time.ts'
import { failed } from '../fluent-bit/parsed-time.ts'
import { type Dialect, fieldLines, parserLines } from '../fluent-bit/parsers.ts'
import { Context } from '../fluent-bit/plugin.ts'
import { type Entry, lastValue, type Section } from '../fluent-bit/sections.ts'
import { pattern } from '../fluent-bit/text.ts'
import { childrenOf, isOn, listOf, objectIn, type Plugged, sectionOf } from './element.ts'
import {
  apacheLines,
  columnLines,
  type Delimiters,
  isNewSyslog,
  labelledLines,
  numberLines,
  type SyslogForm,
  syslogForms,
} from './parser-formats.ts'
import { fallbacksOf, rubyTime, timeOf } from './parser-times.ts'
import type { Element } from './syntax.ts'

const webLine = '(?<host>[^ ]*) [^ ]* (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] "(?<method>\\S+)(?: +(?<path>'
const webTime = '%d/%b/%Y:%H:%M:%S %z'

/** Lines of programs of Kubernetes, in the parsers that the images of its DaemonSet have. */
const programLine = '^(?<severity>\\w)(?<time>\\d{4} [^\\s]*)\\s+(?<pid>\\d+)\\s+(?<source>[^ \\]]+)\\] (?<message>.*)'
const programTime = '%m%d %H:%M:%S.%N'

interface Known {
  readonly regex: string
  readonly time: string
}

/** The expressions of Fluentd's built-in formats. */
const formats: Readonly<Record<string, Known>> = {
  nginx: {
    regex:
      '^(?<remote>[^ ]*) (?<host>[^ ]*) (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] "(?<method>\\S+)(?: +(?<path>[^\\"]*?)(?: +\\S*)?)?" (?<code>[^ ]*) (?<size>[^ ]*)(?: "(?<referer>[^\\"]*)" "(?<agent>[^\\"]*)"(?:\\s+"?(?<http_x_forwarded_for>[^ "]*)"?)?)?$',
    time: webTime,
  },
  apache2: {
    regex: `^${webLine}(?:[^\\"]|\\\\.)*?)(?: +\\S*)?)?" (?<code>[^ ]*) (?<size>[^ ]*)(?: "(?<referer>(?:[^\\"]|\\\\.)*)" "(?<agent>(?:[^\\"]|\\\\.)*)")?$`,
    time: webTime,
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
  kubernetes: { regex: programLine, time: programTime },
  multiline_kubernetes: { regex: `(?m:${programLine})`, time: programTime },
  cri: {
    regex: '^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>[FP]) (?<message>.*)$',
    time: '%Y-%m-%dT%H:%M:%S.%L%z',
  },
}

/** The first line of an event, for the formats that state it themselves. */
export const ownFirstLines: Readonly<Record<string, string>> = { multiline_kubernetes: '/^\\w\\d{4}/' }

/** The largest number of an option `formatN` of the type `multiline`. */
const maxFormats = 20

/** The parts of an expression for several lines. A period also matches a line feed. */
function joinedFormats(read: (key: string) => string | undefined): string {
  const parts = Array.from({ length: maxFormats }, (_, index) =>
    (read(`format${index + 1}`) ?? '').replace(/^\/(.*)\/[imx]*$/s, '$1'),
  )
  return `/${parts.join('')}/m`
}

/** Supported options of `<parse>`, for all plugins that have this element. */
export const parseOptions: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ['@type', "`parse_json`, `parse_grok` (in Ruby's dialect), `parse_csv`, `parse_key_value`"],
    ['type', 'as `@type`'],
    ['expression', 'the expression'],
    ['format', 'as `@type` and `expression`'],
    ['time_key', 'the field for the time'],
    ['time_type', 'the format of the time'],
    ['time_format', 'the format of the time'],
    ['keep_time_key', 'whether to keep the time field'],
    ['types', 'conversions of fields'],
    ['time_format_fallbacks', 'the formats of the time, with `time_type mixed`'],
    ['message_key', 'the field for the line, with the type `none`'],
    ['message_format', 'the form of a syslog line'],
    ['with_priority', 'whether a syslog line begins with its priority'],
    ['rfc5424_time_format', 'the format of the time in lines of RFC 5424'],
    ['keys', 'the column names'],
    ['delimiter', 'between columns'],
    ['delimiter_pattern', 'between members'],
    ['label_delimiter', 'between name and value'],
    ['null_value_pattern', 'texts that become null'],
    ['null_empty_string', 'whether empty texts become null'],
    ['utc', 'the default time zone'],
    ['localtime', 'the default time zone'],
    ['timezone', 'the default time zone'],
    ['time_zone', 'as `timezone`'],
    ['grok_pattern', '`parse_grok`'],
    ['grok', '`parse_grok`; the first pattern that matches wins'],
    ['grok.pattern', 'as `grok_pattern`'],
    ['grok_failure_key', 'a field of lines that do not match'],
    ['multiline_start_regexp', '`multiline` of the source'],
    ['format_firstline', '`multiline` of the source'],
    ...Array.from({ length: maxFormats }, (_, index) => [
      `format${index + 1}`,
      'a part of the expression; others have higher numbers',
    ]),
  ].flatMap(([name, becomes]) => [[`parse.${name}`, becomes as string] as const]),
)

/** Options of a parser for texts whose lines have been joined before. */
export const withoutFirstLines = (options: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !/multiline_start_regexp|format_firstline/.test(name)))

/** Options of a parser within another one. */
export const nestedOptions = Object.keys(withoutFirstLines(parseOptions))
  .filter((name) => !/^parse\.(?:type|format)$/.test(name))
  .map((name) => `parse.${name}`)

/** Options of `<parse>` whose work Penstock does in another way. */
export const parseItself: Readonly<Record<string, string>> = {
  'parse.estimate_current_event': 'an event without a time gets the time at which it is read',
  'parse.json_parser': 'there is one parser',
  'parse.stream_buffer_size': 'there is one parser',
  'parse.parser_type': 'there is one parser',
  'parse.parser_engine': 'there is one parser',
  'parse.support_colonless_ident': 'a colon behind the name of the program is optional',
  'parse.timeout': 'expressions take linear time',
  'parse.unmatched_lines': 'the text of lines that do not match is kept',
  'parse.ignorecase': 'the flags of the expression',
  'parse.multiline': 'the flags of the expression',
}

/**
 * Lines that parse the text `from`. Afterwards `parsed` is an object, or null if the text does not match. Reports a gap and returns
 * undefined if the parser cannot be converted.
 * @param prefix the prefix of option names
 */
export function parsing(
  section: Section,
  prefix: string,
  from: string,
  context: Context,
  gaps: Gap[],
): string[] | undefined {
  const read = (key: string) => lastValue(section, `${prefix}${key}`)
  const stated = read('@type') ?? read('type') ?? read('format') ?? 'json'
  const isExpression = stated.startsWith('/')
  const type = isExpression ? 'regexp' : stated.toLowerCase()
  const known = Object.hasOwn(formats, type) ? formats[type] : undefined
  const isOther = known === undefined && !otherFormats.has(type)
  if (isOther) {
    context.gap(
      section,
      `parser ${type}`,
      `the format \`${type}\` has no counterpart`,
      'Use parse_json, parse_regex, parse_grok or another parser in a remap transform.',
    )
    return undefined
  }
  if (type === 'none') return [`parsed = { ${textLiteral(read('message_key') ?? 'message')}: ${from} }`]
  if (type.endsWith('grok')) return groks(section, prefix, from, context, gaps)
  if (type === 'syslog') return syslogLines(section, prefix, from, gaps)
  const expression =
    known?.regex ?? (type === 'multiline' ? joinedFormats(read) : isExpression ? stated : (read('expression') ?? ''))
  const format = { json: 'json', logfmt: 'logfmt' }[type] ?? 'regex'
  const fallbacks = fallbacksOf(section, prefix)
  const isNumber = ['float', 'unixtime'].includes(read('time_type') ?? '')
  const timeFormat = fallbacks === undefined && !isNumber ? (read('time_format') ?? known?.time) : undefined
  const dialect = dialectOf(section, prefix)
  const { types, lines: nulls } = nullsBefore(section, prefix, read('types'), gaps)
  const parser = parserOf(section, prefix, type, {
    format,
    regex: format === 'regex' ? expression : undefined,
    time_format: timeFormat,
    types,
  })
  const own = new Context([parser], gaps)
  const after = [...(type === 'apache2' ? apacheLines : []), ...nulls]
  const byDefault = format === 'json' ? 'float' : 'string'
  const time = timeFormat === undefined ? timeOf({ section, prefix, zone: dialect.zone }, byDefault, fallbacks) : []
  const fields = () => [
    'if is_object(parsed) {',
    ...fieldLines(type, parser, own, dialect).map((line) => `  ${line}`),
    '}',
  ]
  if (type === 'csv' || type === 'tsv') {
    const lines = columnLines(type, listOf(read('keys')), from, read('delimiter'))
    // Without the option, no column is the time.
    return [...lines, ...fields(), ...(read('time_key') === undefined ? [] : time), ...after]
  }
  if (type === 'ltsv') {
    reportParsedTime(section, context)
    return [...labelledLines(from, dialect.members), ...fields(), ...time, ...after]
  }
  const [first = '', ...rest] = parserLines(type, from, own, section, dialect) ?? []
  return first === '' ? undefined : [first, ...(type === 'logfmt' ? numberLines : []), ...rest, ...time, ...after]
}

/** A line of syslog, in one of two forms. */
function syslogLines(section: Section, prefix: string, from: string, gaps: Gap[]): string[] | undefined {
  const read = (key: string) => lastValue(section, `${prefix}${key}`)
  const forms = syslogForms(isOn(read('with_priority'), false), read('time_format'), read('rfc5424_time_format'))
  const message = (read('message_format') ?? 'rfc3164').toLowerCase()
  const { types: given, lines: after } = nullsBefore(section, prefix, read('types'), gaps)
  const lines = ({ regex, time }: SyslogForm): string[] => {
    const types = [...(regex.includes('<pri>') ? ['pri:integer'] : []), ...(given?.split(',') ?? [])]
    const parser = parserOf(section, prefix, 'syslog', {
      format: 'regex',
      regex,
      time_format: time,
      types: types.length === 0 ? undefined : types.join(','),
    })
    return parserLines('syslog', from, new Context([parser], gaps), section, dialectOf(section, prefix)) ?? []
  }
  if (message !== 'auto') return [...lines(message === 'rfc5424' ? forms.current : forms.old), ...after]
  const inner = (form: SyslogForm) => lines(form).map((line) => `  ${line}`)
  return [`if ${isNewSyslog(from)} {`, ...inner(forms.current), '} else {', ...inner(forms.old), '}', ...after]
}

const otherFormats: ReadonlySet<string> = new Set([
  'json',
  'regexp',
  'ltsv',
  'logfmt',
  'none',
  'csv',
  'tsv',
  'syslog',
  'multiline',
  'grok',
  'multiline_grok',
])

/** The options of `<parse>` as those of a parser of Fluent Bit. */
function parserOf(
  section: Section,
  prefix: string,
  name: string,
  own: Readonly<Record<'format' | 'regex' | 'time_format' | 'types', string | undefined>>,
): Section {
  const read = (key: string) => lastValue(section, `${prefix}${key}`)
  const options: Record<string, string | undefined> = {
    ...own,
    name,
    time_key: read('time_key') ?? 'time',
    time_format: own.time_format === undefined ? undefined : rubyTime(own.time_format),
    time_keep: isOn(read('keep_time_key'), name === 'cri') ? 'on' : 'off',
    types: typesIn(own.types),
    // An empty group is an empty text.
    skip_empty_values: 'off',
  }
  const entries = Object.entries(options).flatMap(([key, value]): Entry[] =>
    value === undefined ? [] : [{ file: section.file, line: section.line, key, value }],
  )
  return { kind: 'parser', file: section.file, line: section.line, entries }
}

/** Types as a list of pairs: an object in JSON has the same meaning. */
function typesIn(text: string | undefined): string | undefined {
  const pairs = text?.trim().startsWith('{') === true ? objectIn(text) : undefined
  return pairs === undefined
    ? text
    : Object.entries(pairs)
        .map((pair) => pair.join(':'))
        .join(',')
}

function dialectOf(section: Section, prefix: string): Dialect & { readonly members: Delimiters } {
  const read = (key: string) => lastValue(section, `${prefix}${key}`)
  const isUtc = isOn(read('utc'), false) || (read('localtime') !== undefined && !isOn(read('localtime'), true))
  return {
    truths: ['true', 'yes', '1'],
    zone: read('timezone') ?? read('time_zone') ?? (isUtc ? 'UTC' : undefined),
    members: {
      pattern: read('delimiter_pattern')?.replace(/^\/(.*)\/$/s, '$1'),
      delimiter: read('delimiter') ?? '\t',
      label: read('label_delimiter') ?? ':',
    },
  }
}

/** Texts that become null. */
function nullLines(regex: string | undefined, isEmpty: string | undefined): readonly string[] {
  const tests = [
    ...(regex === undefined ? [] : [`is_object(parse_grok(string(value) ?? "", ${pattern(regex)}) ?? null)`]),
    ...(isOn(isEmpty, false) ? ['value == ""'] : []),
  ]
  if (tests.length === 0) return []
  const test = `is_string(value) && (${tests.join(' || ')})`
  return [
    'if is_object(parsed) {',
    `  parsed = map_values(object!(parsed)) -> |value| { if ${test} { null } else { value } }`,
    '}',
  ]
}

/**
 * Types of fields. If some texts become null, the conversions follow in lines of their own, because they apply to the other texts.
 * @returns the types that remain for the parser
 */
function nullsBefore(
  section: Section,
  prefix: string,
  types: string | undefined,
  gaps: Gap[],
): { readonly types: string | undefined; readonly lines: readonly string[] } {
  const read = (key: string) => lastValue(section, `${prefix}${key}`)
  const lines = nullLines(read('null_value_pattern'), read('null_empty_string'))
  if (lines.length === 0 || types === undefined) return { types, lines }
  const options = { format: undefined, regex: undefined, time_format: undefined, types }
  const parser = parserOf(section, prefix, 'types', options)
  const conversions = fieldLines('types', parser, new Context([parser], gaps), dialectOf(section, prefix))
  const inner = conversions.map((line) => `  ${line}`)
  return { types: undefined, lines: [...lines, 'if is_object(parsed) {', ...inner, '}'] }
}

/** Grok patterns: the first one that matches wins. A type after a name converts the field. */
function groks(section: Section, prefix: string, from: string, context: Context, gaps: Gap[]): string[] | undefined {
  const of = (key: string) => section.entries.filter((entry) => entry.key === `${prefix}${key}`)
  const patterns = [...of('grok_pattern'), ...of('grok.pattern')].map(({ value }) => value)
  if (patterns.length === 0) {
    context.gap(section, 'parser grok', 'it has no pattern', 'Use parse_grok in a remap transform.')
    return undefined
  }
  if (patterns.some((text) => /:timestamp[:}]|\(\?<timestamp>/.test(text))) reportParsedTime(section, context)
  const types = new Set<string>()
  const calls = patterns.map((text) => {
    const plain = text.replace(/%\{(\w+):([^:}]+):(\w+)(:[^}]*)?\}/g, (_, name, field, type, sign = '') => {
      types.add(`${field}:${type}${sign}`)
      return `%{${name}:${field}}`
    })
    return `parse_grok(${from}, s'${plain.replaceAll("'", '\\x27')}')`
  })
  const parser = parserOf(section, prefix, 'grok', {
    format: 'regex',
    regex: undefined,
    time_format: lastValue(section, `${prefix}time_format`),
    types: types.size === 0 ? undefined : [...types].join(' '),
  })
  const fields = fieldLines('grok', parser, new Context([], gaps), dialectOf(section, prefix))
  const failure = lastValue(section, `${prefix}grok_failure_key`)
  const unmatched = `{ "message": ${from}, ${textLiteral(failure ?? '')}: "No grok pattern matched" }`
  return [
    `parsed = ${calls.join(' ?? ')} ?? null`,
    'if is_object(parsed) {',
    '  parsed = filter(object!(parsed)) -> |_key, value| { value != null }',
    ...fields.map((line) => `  ${line}`),
    ...(failure === undefined ? ['}'] : ['} else {', `  parsed = ${unmatched}`, '}']),
    ...(lastValue(section, `${prefix}time_format`) === undefined
      ? timeOf({ section, prefix, zone: dialectOf(section, prefix).zone }, 'string', undefined)
      : []),
  ]
}

/** The expression of the parser of an input; empty for a parser without one, and undefined if the record is the line alone. */
export function parserOfLines(section: Section): string | undefined {
  const type = lastValue(section, 'parse.@type') ?? lastValue(section, 'parse.type') ?? lastValue(section, 'format')
  if (type === undefined || type === 'none') return undefined
  if (Object.hasOwn(formats, type)) return formats[type]?.regex ?? ''
  return type.startsWith('/')
    ? type
    : (lastValue(section, 'parse.expression') ?? lastValue(section, 'expression') ?? '')
}

/** The alternatives of `multi_format` with their own options; for other formats, the section itself. */
export function alternatives(section: Plugged): readonly { readonly section: Section; readonly prefix: string }[] {
  const [parse] = childrenOf(section.element, 'parse')
  const patterns: readonly Element[] = parse === undefined ? [] : childrenOf(parse, 'pattern')
  if (patterns.length === 0) return [{ section, prefix: 'parse.' }]
  return patterns.map((pattern) => ({ section: sectionOf(pattern), prefix: '' }))
}

/**
 * Lines for all alternatives; the first one that matches wins. Undefined if none can be converted.
 * @param onFailure the statement for a text that matches, but whose time is not valid; without it, such a text does not match. If there are
 * several alternatives, the next one is tried.
 */
export function parsedBy(
  section: Plugged,
  from: string,
  context: Context,
  gaps: Gap[],
  onFailure?: string,
): string[] | undefined {
  const all = alternatives(section).flatMap(({ section: each, prefix }) => {
    const lines = parsing(each, prefix, from, context, gaps)
    return lines === undefined ? [] : [lines]
  })
  if (all.length === 0) return undefined
  const statement = all.length === 1 ? onFailure : undefined
  return [
    'parsed = null',
    ...all.flatMap((lines, index) => {
      const own = withFailure(lines, statement)
      return index === 0 ? own : ['if !is_object(parsed) {', ...own.map((line) => `  ${line}`), '}']
    }),
  ]
}

/** Lines with a statement for times that are not valid. */
export const withFailure = (lines: readonly string[], statement: string | undefined): string[] =>
  lines.flatMap((line) => {
    if (line.trim() !== failed) return [line]
    return statement === undefined ? [] : [line.replace(failed, statement)]
  })
