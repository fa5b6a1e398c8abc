// Processors that parse texts and lists.

import { textLiteral } from '@penstock/agent/config'
import { flagIn, option, type Part, type Report, textIn } from '../loki/context.ts'
import { textOf } from '../loki/tree.ts'
import { fieldOf, leaves } from './conditions.ts'
import {
  attempts,
  block,
  errorLine,
  failing,
  failure,
  type Joint,
  naming,
  type Processor,
  quiet,
  together,
  when,
} from './processor.ts'

/** Sets the error that Filebeat puts into the event for a member of JSON at its root. */
const rootError = (text: string) => `.error = { "message": ${text}, "type": "json" }`

/** Statements for members that may not replace a field: times that are not valid, and types that are not names. */
const replacing = (addsErrors: boolean): readonly string[] => [
  'if exists(decoded."@timestamp") {',
  '  time = parse_timestamp(string(decoded."@timestamp") ?? "", "%+") ?? null',
  `  if time != null { .timestamp = time }${
    addsErrors
      ? ` else { ${rootError('"@timestamp not overwritten (parse error on " + (to_string(decoded."@timestamp") ?? "") + ")"')} }`
      : ''
  }`,
  '}',
  `if exists(decoded.type) && !match(string(decoded.type) ?? "", r'^[^_]') { ${
    addsErrors ? `${rootError('"type not overwritten"')}; ` : ''
  }del(decoded.type) }`,
]

/**
 * Lines that add the members of `decoded` to the event. Filebeat merges objects of the same name, and reads the time of the event only if
 * members may replace fields.
 */
export const intoRoot = (overwrites: boolean, addsErrors: boolean): readonly string[] => [
  ...(overwrites ? replacing(addsErrors) : []),
  'del(decoded."@timestamp")',
  'del(decoded."@metadata")',
  'if exists(decoded.timestamp) { decoded.log_timestamp = del(decoded.timestamp) }',
  `. = merge(${overwrites ? '., object!(decoded)' : 'object!(decoded), .'}, deep: true)`,
]

const compacted = (object: string, recursive: boolean) =>
  `compact(${object}, ${recursive ? '' : 'recursive: false, '}string: false, object: false, array: false)`

/** Statements that leave nulls out of the objects in `decoded`, as Filebeat does. Those in lists stay. */
export const withoutNulls = (text: string): readonly string[] => [
  `if match(${text}, r'[\\[,]\\s*null') {`,
  `  decoded = map_values(${compacted('object!(decoded)', false)}, recursive: true) -> |value| { if is_object(value) { ${compacted('object!(value)', false)} } else { value } }`,
  `} else { decoded = ${compacted('object!(decoded)', true)} }`,
]

/** Statements that take the id of the document out of `decoded`. */
export const idLines = (id: string): readonly string[] => [
  `if is_string(decoded${fieldOf(id)}) { ${fieldOf('@metadata._id')} = del(decoded${fieldOf(id)}) }`,
]

/**
 * Divides names at their dots, because Filebeat finds a field by its path even if its name contains the dots. `unflatten` drops a value whose
 * name is the start of other names, so objects are merged, and beside other values, names keep their dots.
 */
export const expansion = [
  'if is_object(decoded) {',
  '  dotted = filter(object!(decoded)) -> |key, _value| { contains(key, ".") }',
  '  if dotted == {} { decoded = unflatten(object!(decoded), ".") } else {',
  '    plain = filter(object!(decoded)) -> |key, _value| { !contains(key, ".") }',
  '    kept = filter(dotted) -> |key, _value| {',
  '      start = get(plain, [string(split(key, ".")[0]) ?? ""]) ?? null',
  '      start != null && !is_object(start)',
  '    }',
  '    dotted = filter(dotted) -> |key, _value| { !includes(keys(kept), key) }',
  '    decoded = merge(merge(unflatten(plain, "."), unflatten(dotted, "."), deep: true), kept)',
  '  }',
  '}',
].join('\n')

/** Reports that names with dots become objects, unless the configuration asks for it. */
export function reportExpansion(part: Part, isWanted: boolean, report: Report): void {
  if (isWanted) return
  const reason =
    'members whose names contain dots, such as `log.level`, become objects, which search engines read in the same way'
  report.replaced(
    part,
    `${part.name}: names with dots`,
    reason,
    'If a file or a console must get the names with dots, join them in a remap transform.',
  )
}

/** Statements for a failure of a processor that decodes the text of a field, sets `error`, and by default names the error in the event. */
function namedFailure(part: Part, field: string, failed: string): readonly string[] {
  if (flagIn(part, 'ignore_failure') === true) return []
  const test = `error != null || !is_string(${field})`
  const whole = flagIn(part, 'ignore_missing') === true ? `exists(${field}) && (${test})` : test
  const written = errorLine(textLiteral(`failed in ${part.name} on the field ${field.slice(1)}`))
  return [block(whole, [written, ...(failed === '' ? [] : [failed])])]
}

/** The statement for a failure of a processor that decodes the text of a field and sets `error`. */
function failureOf(part: Part, field: string, failed: string): readonly string[] {
  const isIgnored = flagIn(part, 'fail_on_error') === false || flagIn(part, 'ignore_failure') === true
  const test = `error != null || !is_string(${field})`
  const whole = flagIn(part, 'ignore_missing') === true ? `exists(${field}) && (${test})` : test
  return isIgnored ? [] : failure(whole, failed)
}

export const decodeBase64: Processor = {
  name: 'decode_base64_field',
  becomes: '`decode_base64`',
  options: { ...when, ...failing, 'field.from': 'the field with the text', 'field.to': 'the field for the result' },
  itself: naming,
  build: (part, _report, failed) => {
    const from = fieldOf(textIn(part, 'field.from') ?? '')
    const to = fieldOf(textIn(part, 'field.to') || (textIn(part, 'field.from') ?? ''))
    const decoded = `decode_base64(string(${from}) ?? "") ?? null`
    const fails = `!is_string(${from}) || is_null(${decoded})`
    return attempts(part, [{ from, fails, lines: [`${to} = ${decoded}`] }], failed)
  },
}

export const decompressGzip: Processor = {
  name: 'decompress_gzip_field',
  becomes: '`decode_gzip`',
  options: { ...when, ...failing, 'field.from': 'the compressed field', 'field.to': 'the field for the result' },
  itself: naming,
  build: (part, _report, failed) => {
    const from = fieldOf(textIn(part, 'field.from') ?? '')
    const to = fieldOf(textIn(part, 'field.to') ?? textIn(part, 'field.from') ?? '')
    const fails = `is_null(decode_gzip(string(${from}) ?? "") ?? null)`
    return attempts(part, [{ from, fails, lines: [`${to} = decode_gzip(string(${from}) ?? "") ?? null`] }], failed)
  },
}

/** Units of durations by their names in Filebeat. */
const durationUnits: Readonly<Record<string, string>> = { milliseconds: 'ms', seconds: 's', minutes: 'm', hours: 'h' }

export const decodeDuration: Processor = {
  name: 'decode_duration',
  becomes: '`parse_duration`',
  options: { ...when, field: 'the field', format: 'the unit of the result' },
  itself: quiet,
  build: (part, report, failed) => {
    const format = textIn(part, 'format') ?? 'milliseconds'
    const unit = durationUnits[format]
    if (unit === undefined) {
      const reason = `\`${format}\` is not a unit of the processor`
      report.gap(
        part,
        `decode_duration: format ${format}`,
        reason,
        'Use `milliseconds`, `seconds`, `minutes` or `hours`.',
      )
      return undefined
    }
    const field = fieldOf(textIn(part, 'field') ?? '')
    return [
      `took, error = parse_duration(string(${field}) ?? "", unit: "${unit}")`,
      ...failureOf(part, field, failed),
      `if error == null && is_string(${field}) { ${field} = took }`,
    ]
  },
}

export const decodeCsv: Processor = {
  name: 'decode_csv_fields',
  becomes: '`parse_csv`',
  options: {
    ...when,
    fields: 'fields with texts, and fields for the lists',
    separator: '`delimiter`',
    overwrite_keys: 'whether to replace an existing field',
    trim_leading_space: 'white space before a column is removed',
  },
  itself: quiet,
  build: (part, _report, failed) => {
    const separator = textIn(part, 'separator') ?? ','
    const trims = flagIn(part, 'trim_leading_space') === true
    const overwrites = flagIn(part, 'overwrite_keys') === true
    const fields = leaves(option(part, 'fields') ?? part.tree).map(([name, item], index): Joint => {
      const [from, to] = [fieldOf(name), fieldOf(textOf(item) || name)]
      const [columns, error] = [`columns${index + 1}`, `error${index + 1}`]
      const isFree = overwrites || from === to ? '' : ` && !exists(${to})`
      const found = trims ? `map_values(${columns}) -> |column| { replace(column, r'^\\s+', "") }` : columns
      return {
        from,
        before: [`${columns}, ${error} = parse_csv(string(${from}) ?? "", delimiter: ${textLiteral(separator)})`],
        test: `${error} == null && is_string(${from}) && ${from} != ""${isFree}`,
        lines: [`${to} = ${found}`],
      }
    })
    return together(part, fields, failed)
  },
}

export const extractArray: Processor = {
  name: 'extract_array',
  becomes: 'a remap transform that reads items by index',
  options: {
    ...when,
    field: 'the list',
    mappings: 'the fields for the items',
    overwrite_keys: 'whether to replace existing fields',
    omit_empty: 'whether to leave out empty items',
  },
  itself: quiet,
  build: (part, _report, failed) => {
    const list = fieldOf(textIn(part, 'field') ?? '')
    const keeps = flagIn(part, 'overwrite_keys') !== true
    const places = leaves(option(part, 'mappings') ?? part.tree).flatMap(([name, item]) => {
      const place = Number(textOf(item))
      return Number.isInteger(place) && place >= 0 ? [[fieldOf(name), place] as const] : []
    })
    // The step runs only if all items exist and none of the fields do.
    const longest = Math.max(...places.map(([, place]) => place))
    const isGiven = (place: number) => `!includes([null, "", [], {}], items[${place}])`
    const omits = flagIn(part, 'omit_empty') === true
    const isFree = (field: string, place: number) => [
      ...(keeps ? [omits ? `(!${isGiven(place)} || !exists(${field}))` : `!exists(${field})`] : []),
    ]
    const tests = [`length(items) > ${longest}`, ...places.flatMap(([field, place]) => isFree(field, place))]
    if (flagIn(part, 'fail_on_error') === false)
      return [
        `items = array(${list}) ?? []`,
        ...places.map(([field, place]) => {
          const each = [`length(items) > ${place}`, ...(omits ? [isGiven(place)] : []), ...isFree(field, place)]
          return `if ${each.join(' && ')} { ${field} = items[${place}] }`
        }),
      ]
    return places.length === 0
      ? []
      : [
          `items = array(${list}) ?? []`,
          `if ${tests.join(' && ')} {`,
          ...places.map(([field, place]) =>
            omits ? `  if ${isGiven(place)} { ${field} = items[${place}] }` : `  ${field} = items[${place}]`,
          ),
          failed === ''
            ? '}'
            : `} else if ${flagIn(part, 'ignore_missing') === true ? `exists(${list})` : 'true'} { ${failed} }`,
        ]
  },
}

export const decodeXml: Processor = {
  name: 'decode_xml',
  becomes: '`parse_xml`',
  options: {
    ...when,
    field: 'the field with the text',
    target_field: 'the field for the document; by default the field with the text; if empty, the root of the event',
    overwrite_keys: 'whether to replace existing fields at the root of the event',
    document_id: '`id_key`, from metadata',
    to_lower: 'whether to convert names to lower case',
  },
  itself: quiet,
  build: (part, _report, failed) => {
    const name = textIn(part, 'field') ?? 'message'
    const from = fieldOf(name)
    const target = option(part, 'target_field') === undefined ? name : (textIn(part, 'target_field') ?? '')
    const id = textIn(part, 'document_id')
    const addsErrors = flagIn(part, 'ignore_failure') !== true
    const lower =
      'if is_object(decoded) { decoded = map_keys(object!(decoded), recursive: true) -> |key| { downcase(key) } }'
    const written =
      target === ''
        ? [block('is_object(decoded)', intoRoot(flagIn(part, 'overwrite_keys') !== false, addsErrors))]
        : [`${fieldOf(target)} = decoded`]
    return [
      `decoded, error = parse_xml(string(${from}) ?? "", attr_prefix: "", text_key: "#text", parse_bool: false, parse_null: false, parse_number: false)`,
      ...namedFailure(part, from, failed),
      block(`error == null && is_string(${from})`, [
        ...(flagIn(part, 'to_lower') === false ? [] : [lower]),
        ...(id === undefined ? [] : [block('is_object(decoded)', idLines(id))]),
        ...written,
      ]),
    ]
  },
}

/** Names that `parse_syslog` returns, ordered by number, and the names that Filebeat writes. */
const severities = 'emerg alert crit err warning notice info debug'.split(' ')
const severityNames = ['Emergency', 'Alert', 'Critical', 'Error', 'Warning', 'Notice', 'Informational', 'Debug']
const locals = Array.from({ length: 8 }, (_, index) => `local${index}`)
const facilities = [
  ...'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp ntp security console solaris-cron'.split(' '),
  ...locals,
]
const facilityNames = [
  ...['kernel', 'user-level', 'mail', 'system', 'security/authorization', 'syslogd', 'line printer', 'network news'],
  ...['UUCP', 'clock', 'security/authorization', 'FTP', 'NTP', 'log audit', 'log alert', 'clock'],
  ...locals,
]
const numbers = (words: readonly string[]) => `{ ${words.map((word, index) => `"${word}": ${index}`).join(', ')} }`
const names = (words: readonly string[]) => `[${words.map((word) => `"${word}"`).join(', ')}]`

export const syslog: Processor = {
  name: 'syslog',
  becomes: '`parse_syslog`, with the fields below `log.syslog`',
  options: {
    ...when,
    field: 'the field with the text',
    format: 'both formats are read',
    timezone: 'UTC; a gap for others',
    overwrite_keys: 'whether to replace existing fields',
  },
  itself: quiet,
  build: (part, report, failed) => [
    ...syslogLines(part, report, false),
    ...namedFailure(part, fieldOf(textIn(part, 'field') ?? 'message'), failed),
  ],
}

/** Statements that parse a line of syslog. The parser of inputs has the same options. */
export function syslogLines(part: Part, report: Report, addsErrors: boolean): readonly string[] {
  const zone = textIn(part, 'timezone') ?? 'Local'
  if (!/^(?:UTC|Local|Etc\/UTC|[+-]00:?00)$/i.test(zone)) {
    report.gap(
      option(part, 'timezone') ?? part,
      'syslog: timezone',
      'the agent reads times without a time zone as UTC',
      /^[+-]/.test(zone)
        ? 'Set `timezone` of the remap transform to a zone with this offset, such as `Etc/GMT-2` for `+02:00`.'
        : `Set \`timezone: ${zone}\` in the remap transform.`,
    )
  }
  const from = fieldOf(textIn(part, 'field') ?? 'message')
  const keeps = flagIn(part, 'overwrite_keys') === false
  const rest =
    '!includes(["appname", "facility", "hostname", "message", "msgid", "procid", "severity", "timestamp", "version"], key)'
  return [
    `parsed, error = parse_syslog(string(${from}) ?? "")`,
    `if error == null && is_string(${from}) {`,
    `  severity = int(get(${numbers(severities)}, [string(parsed.severity) ?? ""]) ?? 0) ?? 0`,
    `  facility = int(get(${numbers(facilities)}, [string(parsed.facility) ?? ""]) ?? 0) ?? 0`,
    '  made = {',
    '    "priority": facility * 8 + severity,',
    `    "severity": { "code": severity, "name": get(${names(severityNames)}, [severity]) ?? null },`,
    `    "facility": { "code": facility, "name": get(${names(facilityNames)}, [facility]) ?? null },`,
    '    "appname": parsed.appname,',
    '    "hostname": parsed.hostname,',
    '    "msgid": parsed.msgid,',
    '    "version": to_string(parsed.version),',
    `    "structured_data": filter(object!(parsed)) -> |key, value| { is_object(value) && ${rest} }`,
    '  }',
    '  if is_string(parsed.appname) { made.procid = to_string(parsed.procid) }',
    '  made = filter(made) -> |_key, value| { !is_null(value) && value != "" && value != {} }',
    `  ${keeps ? 'if !exists(.log.syslog) { .log.syslog = made }' : '.log = merge(object(.log) ?? {}, { "syslog": made }, deep: true)'}`,
    ...(keeps ? [] : ['  if (string(parsed.message) ?? "") != "" { .message = parsed.message }']),
    '  if is_timestamp(parsed.timestamp) { .timestamp = parsed.timestamp }',
    `}${addsErrors ? ` else { ${errorLine('"Error parsing syslog message"')} }` : ''}`,
  ]
}
