// Operators that parse a text: the result is an object or a list, which becomes the value of a field or is merged with it.

import type { Described } from '../page.ts'
import { columnLines } from './csv.ts'
import { conditionOf } from './expression.ts'
import { parseExpression, UnknownExpression } from './expression-parser.ts'
import { type Field, fieldOf, openRead, storeLines } from './field.ts'
import { pairLines } from './key-value.ts'
import type { Context, Mapping, Part } from './mapping.ts'
import { fieldAt } from './record.ts'
import { severityLines, severityOptions, timeLines, timeOptions } from './record-time.ts'
import { scopeLines, scopeOptions, traceLines, traceOptions } from './record-trace.ts'
import { floatsIn, regexLiteral, renamedGroups, valueLiteral, withGroupNames } from './text.ts'

export type Lines = readonly string[]

export const common = {
  type: 'the type',
  id: 'the name',
  output: 'the next operator',
  if: '`if` around the statements',
}
/** The option `on_error` of all operators that change records. */
export const errorOption = {
  on_error: '`drop` and `drop_quiet` discard events for which the operator fails; otherwise they pass unchanged',
} as const
const parsing = {
  ...common,
  ...errorOption,
  parse_from: 'the field to parse',
  parse_to: 'the field for the result',
  body: 'the field that becomes the body',
  timestamp: 'the time of the event',
  severity: '`.severity_text`, `.severity_number`',
  trace: '`.trace_id`, `.span_id`, `.flags`',
  scope_name: '`.scope.name`',
} as const

/** Statements for an event for which an operator fails. */
export const failingLines = (part: Part): readonly string[] =>
  (part.text('on_error') ?? '').startsWith('drop') ? ['abort'] : []

export function condition(part: Part, option: string, context: Context): string | undefined {
  const text = part.text(option)
  if (text === undefined) return undefined
  try {
    return conditionOf(parseExpression(text))
  } catch (error) {
    if (!(error instanceof UnknownExpression)) throw error
    context.gap(
      part.place([option]),
      `${part.id}: ${option}`,
      `the expression \`${text}\` has no counterpart: ${error.message}`,
      'Rewrite the operator as a remap transform.',
    )
    return undefined
  }
}

export function field(part: Part, option: string, context: Context, byDefault?: string): Field | undefined {
  const text = part.text(option) ?? byDefault
  const found = fieldOf(text ?? '')
  if (found === undefined) {
    context.gap(
      part.place([option]),
      `${part.id}: ${option}`,
      `\`${text ?? ''}\` is not a field of body, attributes or resource`,
      'Rewrite the operator as a remap transform.',
    )
  }
  return found
}

/** A parser. The call returns an object, or null if the text does not have the format. */
function parser(
  name: string,
  becomes: string,
  options: Readonly<Record<string, string>>,
  call: (text: string, part: Part, context: Context) => readonly string[] | undefined,
  itself: Described['itself'] = {},
  testOf: (part: Part) => string = () => 'is_object',
): Mapping<Lines> {
  return {
    name,
    becomes,
    options: { ...parsing, ...options },
    itself,
    build: (part, context) => {
      const from = field(part, 'parse_from', context, 'body')
      const to = field(part, 'parse_to', context, 'attributes')
      if (from === undefined || to === undefined) return []
      const at = fieldAt(from.path)
      const lines = call(`string!(${at})`, part, context)
      if (lines === undefined) return []
      const blocks = [...bodyLines(part, context), ...blocksOf(part, context)]
      const otherwise = failingLines(part)
      return [
        'parsed = null',
        `if is_string(${at}) {`,
        ...lines.map((line) => `  ${line}`),
        '}',
        `if ${testOf(part)}(parsed) {`,
        ...storeLines(to, 'parsed').map((line) => `  ${line}`),
        ...blocks.map((line) => `  ${line}`),
        ...(otherwise.length === 0 ? [] : ['} else {', ...otherwise.map((line) => `  ${line}`)]),
        '}',
      ]
    },
  }
}

/** Statements that make a field of the result the body, if it exists. */
function bodyLines(part: Part, context: Context): string[] {
  const from = part.has('body') ? field(part, 'body', context) : undefined
  if (from === undefined) return []
  const read = openRead(from.path)
  return [`if ${read} != null { .message = ${read} }`]
}

const blocks = [
  ['timestamp', timeOptions, timeLines],
  ['severity', severityOptions, severityLines],
  ['trace', traceOptions, traceLines],
  ['scope_name', scopeOptions, scopeLines],
] as const

function blocksOf(part: Part, context: Context): string[] {
  return blocks.flatMap(([name, options, linesOf]) => {
    if (!part.has(name)) return []
    const block = part.within([name], part.table(name), part.id)
    context.reportOptions(block, { name, options })
    return linesOf(block, context, failingLines(part))
  })
}

export const jsonParser = parser(
  'jsonparser',
  'a remap transform with `parse_json`',
  { parse_ints: '`true` keeps integers; otherwise all numbers become floats' },
  (text, part, context) => {
    const line = `parsed = parse_json(${text}) ?? null`
    if (part.flag('parse_ints', false)) return [line]
    context.makeFloats()
    return [line, `if is_object(parsed) { parsed = ${floatsIn('object!(parsed)')} }`]
  },
)

export const regexParser = parser(
  'regexparser',
  'a remap transform with `parse_regex`',
  { regex: 'the pattern; a group that does not match becomes an empty text' },
  (text, part, context) => {
    const regex = part.text('regex')
    if (regex === undefined || !/\(\?P?</.test(regex)) {
      context.gap(
        part.place(),
        `${part.id}: regex`,
        'the pattern has no named group',
        'Name groups with `(?P<name>…)`.',
      )
      return undefined
    }
    const { pattern, names } = withGroupNames(regex)
    const groups = renamedGroups('object!(parsed)', names)
    return [
      `parsed = parse_regex(${text}, ${regexLiteral(pattern)}) ?? null`,
      `if is_object(parsed) { parsed = map_values(${groups}) -> |group| { if group == null { "" } else { group } } }`,
    ]
  },
  { cache: 'the transform needs no cache' },
)

/** Lines of a container runtime outside of pods. Those of Docker are JSON. */
export const containerParser: Mapping<Lines> = {
  name: 'container',
  becomes:
    'a remap transform for lines of files that are not those of pods; the source `orchestrator_logs` parses lines of pods',
  options: {
    ...common,
    ...errorOption,
    format: '`parse_json` for `docker`, `parse_regex` for other formats, or both',
  },
  itself: {
    max_log_size: 'lines are not joined',
    add_metadata_from_filepath: 'only paths of pod logs name a pod',
  },
  build: (part, context) => {
    const format = part.text('format') ?? ''
    if (format !== 'docker') {
      context.replaced(
        part.place(),
        `${part.id}: operator container`,
        'partial lines of runtimes other than Docker are not joined',
        'Nothing, unless lines are longer than 16 KiB. Lines of pods in `/var/log/pods` are joined.',
      )
    }
    const json = 'if starts_with(text, "{") { parsed = parse_json(text) ?? null }'
    const regex = `if !starts_with(text, "{") { parsed = parse_regex(text, r'^(?P<time>[^ ]+) (?P<stream>stdout|stderr) (?P<logtag>[^ ]*) ?(?P<log>.*)$') ?? null }`
    const otherwise = failingLines(part)
    return [
      'parsed = null',
      'text = string(.message) ?? ""',
      ...(format === '' || format === 'docker' ? [json] : []),
      ...(format === 'docker' ? [] : [regex]),
      'if is_object(parsed) {',
      '  .attributes = merge(object(.attributes) ?? {}, object!(parsed))',
      '  time, error = parse_timestamp(string(del(.attributes.time)) ?? "", "%+")',
      '  if error == null { .timestamp = time }',
      '  if exists(.attributes.log) { .message = del(.attributes.log) }',
      `  if exists(.attributes.stream) { ${fieldAt(['attributes', 'log.iostream'])} = del(.attributes.stream) }`,
      ...(otherwise.length === 0 ? [] : ['} else {', ...otherwise.map((line) => `  ${line}`)]),
      '}',
    ]
  },
}

export const keyValueParser = parser(
  'keyvalueparser',
  'a remap transform that splits pairs',
  { delimiter: 'the text between a key and its value', pair_delimiter: 'the text between pairs' },
  (text, part) => pairLines(text, part.text('delimiter') ?? '=', part.text('pair_delimiter') ?? ' '),
)

export const csvParser = parser(
  'csvparser',
  'a remap transform with `parse_csv`',
  {
    header: 'the column names',
    header_attribute: 'the attribute with the column names',
    header_delimiter: 'the delimiter of the column names',
    delimiter: '`delimiter`',
    lazy_quotes: 'whether quotes may be anywhere in a column',
    ignore_quotes: '`split` in place of `parse_csv`',
  },
  (text, part, context) => {
    const delimiter = part.text('delimiter') ?? ','
    const between = part.text('header_delimiter') ?? delimiter
    const header = part.text('header')
    const attribute = part.text('header_attribute')
    if (header === undefined && attribute === undefined) {
      context.gap(part.place(), `${part.id}: header`, 'the operator does not name the columns', 'Set `header`.')
      return undefined
    }
    const mode = part.flag('ignore_quotes', false)
      ? 'ignoreQuotes'
      : part.flag('lazy_quotes', false)
        ? 'lazyQuotes'
        : 'strict'
    return [
      ...namesLines(header, attribute, between),
      ...columnLines(text, delimiter, mode),
      'if length(columns) == length(names) { parsed = object_from_array(zip(names, columns)) }',
    ]
  },
)

/** Statements that set `names` to the names of columns. */
function namesLines(header: string | undefined, attribute: string | undefined, between: string): readonly string[] {
  if (header !== undefined) return [`names = [${header.split(between).map(valueLiteral).join(', ')}]`]
  const field = fieldAt(['attributes', attribute ?? ''])
  return [`names = if is_string(${field}) { split(string!(${field}), ${valueLiteral(between)}) } else { [] }`]
}

export const jsonArrayParser = parser(
  'jsonarrayparser',
  'a remap transform with `parse_json`',
  { header: 'the names of the items', header_delimiter: 'the delimiter of the names' },
  (text, part) => {
    const header = part.text('header')
    return [
      `parsed = parse_json(${text}) ?? null`,
      ...(header === undefined
        ? []
        : [
            'columns = array(parsed) ?? []',
            ...namesLines(header, undefined, part.text('header_delimiter') ?? ','),
            'parsed = null',
            'if length(columns) == length(names) { parsed = object_from_array(zip(names, columns)) }',
          ]),
    ]
  },
  {},
  (part) => (part.has('header') ? 'is_object' : 'is_array'),
)

export const uriParser = parser('uriparser', 'a remap transform with `parse_url`', {}, (text) => [
  `parts = parse_url(${text}) ?? null`,
  'if is_object(parts) {',
  '  parsed = { "scheme": parts.scheme, "host": parts.host, "path": parts.path, "query": map_values(object(parts.query) ?? {}) -> |value| { [value] } }',
  '  if parts.port != null { parsed.port = to_string(parts.port) }',
  '  if parts.username != "" { parsed.user = parts.username }',
  '  parsed = filter(parsed) -> |_key, value| { value != null && value != "" && value != {} }',
  '}',
])

export const syslogParser = parser(
  'syslogparser',
  'a remap transform with `parse_syslog`',
  {
    location: 'a gap: times without a zone are read as UTC',
    enable_octet_counting: 'whether to remove the length before the priority',
  },
  (given, part, context) => {
    const isCounted = part.flag('enable_octet_counting', false)
    const text = isCounted ? `replace(${given}, r'^[0-9]+ (<)', "$1")` : given
    const zone = part.text('location')
    if (zone !== undefined && zone !== 'UTC') {
      context.gap(
        part.place(['location']),
        `${part.id}: location`,
        'times without a zone are read as UTC',
        'Correct `.timestamp` in a remap transform.',
      )
    }
    return [
      `found = parse_syslog(${text}) ?? null`,
      'if is_object(found) {',
      '  facility = to_syslog_facility_code(string(found.facility) ?? "user") ?? 1',
      '  level = to_syslog_severity(string(found.severity) ?? "notice") ?? 5',
      '  proc_id = if found.procid == null { null } else { to_string(found.procid) }',
      '  structured = filter(object!(found)) -> |_key, value| { is_object(value) }',
      '  if is_empty(structured) { structured = null }',
      '  parsed = { "priority": facility * 8 + level, "facility": facility, "message": found.message, "hostname": found.hostname, "appname": found.appname, "proc_id": proc_id, "msg_id": found.msgid, "version": found.version, "structured_data": structured }',
      '  parsed = filter(parsed) -> |_key, value| { value != null }',
      '  .severity_text = found.severity',
      '  .severity_number = get([21, 19, 18, 17, 13, 10, 9, 5], [level]) ?? 0',
      '  if is_timestamp(found.timestamp) { .timestamp = found.timestamp }',
      '}',
    ]
  },
  {
    protocol: 'the function detects the protocol',
    allow_skip_pri_header: 'lines without a priority are also parsed',
    non_transparent_framing_trailer: 'the source separates lines',
    max_octets: 'the source limits lines',
  },
)
