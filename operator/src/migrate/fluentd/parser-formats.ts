// Parsers of Fluentd whose results differ from those of similar functions of the language: columns, labelled values, web server lines and
// syslog. All of them are lines of a program that put an object, or null, into `parsed`.

import { textLiteral } from '@penstock/agent/config'
import { pattern } from '../fluent-bit/text.ts'

/** Columns between delimiters. A missing column is null, and so is an empty one of CSV; further columns are left out. */
export function columnLines(
  type: 'csv' | 'tsv',
  keys: readonly string[],
  from: string,
  delimiter: string | undefined,
): string[] {
  const between = textLiteral(delimiter ?? (type === 'csv' ? ',' : '\t'))
  const columns =
    type === 'csv'
      ? `parse_csv(${from}, delimiter: ${between}) ?? null`
      : `split(${from}, ${between}, limit: ${Math.max(1, keys.length)})`
  const members = keys.map((key, index) => `${textLiteral(key)}: get(columns, [${index}]) ?? null`)
  const record = members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
  if (type === 'tsv') return [`columns = ${columns}`, `parsed = ${record}`]
  return [
    `columns = ${columns}`,
    `parsed = if is_array(columns) && (${from}) != "" { ${record} } else { null }`,
    'if is_object(parsed) {',
    '  parsed = map_values(object!(parsed)) -> |value| { if value == "" { null } else { value } }',
    '}',
  ]
}

export interface Delimiters {
  readonly pattern?: string | undefined
  readonly delimiter: string
  readonly label: string
}

/** Names and values. A part without the delimiter between them is left out. */
export function labelledLines(from: string, { pattern: regex, delimiter, label }: Delimiters): string[] {
  const between = regex === undefined ? textLiteral(delimiter) : `r'${regex.replaceAll("'", "\\'")}'`
  const sign = textLiteral(label)
  return [
    'parsed = {}',
    `for_each(split(${from}, ${between})) -> |_index, part| {`,
    `  part = to_string(part) ?? ""`,
    `  if contains(part, ${sign}) {`,
    `    pair = split(part, ${sign}, limit: 2)`,
    '    parsed = object(set(parsed, [to_string(get(pair, [0]) ?? null) ?? ""], get(pair, [1]) ?? null) ?? null) ?? parsed',
    '  }',
    '}',
  ]
}

/** The parser of logfmt reads numbers. */
export const numberLines: readonly string[] = [
  'if is_object(parsed) {',
  '  parsed = map_values(object!(parsed)) -> |value| {',
  '    text = string(value) ?? ""',
  "    if match(text, r'^[-+]?\\d+$') { to_int(text) ?? value } else if match(text, r'^[-+]?\\d*\\.?\\d+(?:[eE][-+]?\\d+)?$') { to_float(text) ?? value } else { value }",
  '  }',
  '}',
]

/** The Apache parser returns all fields. A hyphen is null in some of them. */
export const apacheLines: readonly string[] = [
  'if is_object(parsed) {',
  `  parsed = merge({ ${['host', 'user', 'method', 'path', 'code', 'size', 'referer', 'agent'].map((name) => `"${name}": null`).join(', ')} }, object!(parsed))`,
  ...['host', 'user', 'referer', 'agent', 'size'].map((name) => `  if parsed.${name} == "-" { parsed.${name} = null }`),
  '  if is_string(parsed.size) { parsed.size = to_int(parsed.size) ?? 0 }',
  '  parsed.code = to_int(parsed.code) ?? 0',
  '  if parsed.code == 0 { parsed.code = null }',
  '}',
]

const syslogRest = '(?<host>[^ ]*) (?<ident>[^ :\\[]*)(?:\\[(?<pid>[0-9]+)\\])?(?:[^\\:]*\\:)? *(?<message>.*)$'
const newSyslog =
  '(?<time>[^ ]+) (?<host>[!-~]{1,255}) (?<ident>[!-~]{1,48}) (?<pid>[!-~]{1,128}) (?<msgid>[!-~]{1,32}) (?<extradata>(?:\\-|(?:\\[.*?(?<!\\\\)\\])+))(?: (?<message>.+))?'

export interface SyslogForm {
  readonly regex: string
  readonly time: string
}

/** The forms of syslog lines, with and without the priority in front. */
export function syslogForms(
  hasPriority: boolean,
  time: string | undefined,
  newTime: string | undefined,
): { readonly old: SyslogForm; readonly current: SyslogForm } {
  return {
    old: {
      regex: hasPriority
        ? `^\\<(?<pri>[0-9]+)\\>(?<time>[^ ]* {1,2}[^ ]* [^ ]*) ${syslogRest}`
        : `^(?<time>[^ ]*\\s*[^ ]* [^ ]*) ${syslogRest}`,
      time: time ?? '%b %d %H:%M:%S',
    },
    current: {
      regex: hasPriority ? `(?m)\\A<(?<pri>[0-9]{1,3})\\>[1-9]\\d{0,2} ${newSyslog}\\z` : `(?m)\\A${newSyslog}\\z`,
      time: newTime ?? '%Y-%m-%dT%H:%M:%S.%L%z',
    },
  }
}

/** Whether a line is in the form of RFC 5424. */
export const isNewSyslog = (from: string) =>
  `is_object(parse_grok(${from}, ${pattern('/^\\<[0-9]{1,3}\\>[1-9]\\d{0,2}/')}) ?? null)`
