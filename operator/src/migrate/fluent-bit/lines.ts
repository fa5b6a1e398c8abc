// Text formats that outputs of Fluent Bit write instead of JSON. A program puts the line into `.message`, and the sink uses the codec `text`.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { eventTime } from '../unix-time.ts'

/** Lines that set `record` to the fields to write: the record without its time and some other fields. */
export const recordLines = (removed: readonly (readonly string[])[]): readonly string[] => [
  'record = .',
  'del(record.timestamp)',
  ...removed.map((path) => `del(record${fieldLiteral(path)})`),
]

/** The format of Fluentd's plugin: texts with spaces or `=` in quotes; quotes and backslashes escaped. */
const pluginText = [
  '  text = replace(replace(string(value) ?? encode_json(value), "\\\\", "\\\\\\\\"), "\\"", "\\\\\\"")',
  '  if contains(text, " ") || contains(text, "=") { text = "\\"" + text + "\\"" }',
]

/**
 * Lines that set a variable to a value in the format `key_value`: a text in quotes without escapes, and objects and arrays in the form that
 * Go prints, down to a depth; deeper ones are JSON.
 */
function valueText(value: string, variable: string, depth: number): readonly string[] {
  const plain = `${variable} = if is_string(${value}) { "\\"" + string!(${value}) + "\\"" } else { encode_json(${value}) }`
  if (depth === 0) return [plain]
  const [parts, key, item, text] = ['parts', 'key', 'item', 'text'].map((name) => `${name}_${depth}`) as [
    string,
    string,
    string,
    string,
  ]
  const members = (kind: 'object' | 'array', name: string, member: string, start: string) => [
    `  ${parts} = []`,
    `  for_each(${kind}!(${value})) -> |${name}, ${item}| {`,
    `    ${text} = ""`,
    ...valueText(item, text, depth - 1).map((line) => `    ${line}`),
    `    ${parts} = push(${parts}, ${member})`,
    '  }',
    `  ${variable} = "\\"${start}[" + (join(${parts}, " ") ?? "") + "]\\""`,
  ]
  return [
    `${variable} = ""`,
    `if is_object(${value}) {`,
    ...members('object', key, `${key} + ":" + ${text}`, 'map'),
    `} else if is_array(${value}) {`,
    ...members('array', `_${key}`, text, ''),
    '} else {',
    `  ${plain}`,
    '}',
  ]
}

/** `key="text" number=1`; for a record with one field, only its value. */
export function lokiLines(
  format: string,
  dropsSingle: string | undefined,
  removed: readonly (readonly string[])[],
): readonly string[] {
  const isJson = format === 'json'
  const whole = isJson
    ? ['line = encode_json(record)']
    : [
        'parts = []',
        'for_each(record) -> |key, value| {',
        ...(format === 'plugin' ? pluginText : valueText('value', 'text', 2).map((line) => `  ${line}`)),
        '  parts = push(parts, key + "=" + text)',
        '}',
        'line = join(parts, " ") ?? ""',
      ]
  const isPairs = !isJson && format !== 'plugin'
  const only = dropsSingle === 'raw' || !isJson ? 'string(only) ?? encode_json(only)' : 'encode_json(only)'
  const inLine = isPairs
    ? [
        '  line = string(only) ?? ""',
        '  if !is_string(only) {',
        ...valueText('only', 'line', 2).map((line) => `    ${line}`),
        '  }',
      ]
    : [`  line = ${only}`]
  const single =
    dropsSingle === undefined
      ? []
      : ['if length(record) == 1 {', '  only = get(values(record), [0]) ?? null', ...inLine, '}']
  return [...recordLines(removed), ...whole, ...single, '.message = line']
}

/** Formats of files: `csv`, `ltsv`, a template, or tag and time followed by JSON. */
export function fileLines(
  format: string,
  options: {
    readonly delimiter?: string | undefined
    readonly label?: string | undefined
    readonly template?: string | undefined
  },
  tag: readonly string[],
): readonly string[] | undefined {
  const time = (unit: string, digits: number) =>
    `time = replace(to_string(to_unix_timestamp(${eventTime}, unit: "${unit}")), r'(\\d{${digits}})$', ".$1")`
  const precise = [...recordLines([]), time('nanoseconds', 9)]
  const rounded = [...recordLines([]), time('microseconds', 6)]
  if (format === 'out_file')
    return [...precise, ...tag, '.message = tag + ": [" + time + ", " + encode_json(record) + "]"']
  if (format === 'template') return [...rounded, ...templateLines(options.template ?? '{time} {message}')]
  const members = (start: readonly string[], part: string, delimiter: string, first: string) => [
    ...start,
    `parts = [${first}]`,
    'for_each(record) -> |key, value| {',
    `  ${valueText('value', 'text', 0).join('')}`,
    `  parts = push(parts, ${part})`,
    '}',
    `.message = join(parts, ${textLiteral(delimiter)}) ?? ""`,
  ]
  if (format === 'csv') return members(precise, 'text', delimiterOf(options.delimiter, ','), 'time')
  if (format !== 'ltsv') return undefined
  const label = textLiteral(delimiterOf(options.label, ':'))
  const key = `"\\"" + key + "\\"" + ${label} + text`
  return members(rounded, key, delimiterOf(options.delimiter, '\t'), `"\\"time\\"" + ${label} + time`)
}

/** Fluent Bit knows these delimiters, and takes its own for another text. */
function delimiterOf(text: string | undefined, byDefault: string): string {
  const words: Readonly<Record<string, string>> = { '\\t': '\t', tab: '\t', space: ' ', comma: ',' }
  return words[text?.toLowerCase() ?? ''] ?? byDefault
}

/** Lines that make the text of a template. A name in braces stays as it is where the record has no such field. */
function templateLines(text: string): readonly string[] {
  const parts = text.split(/(\{[^{}]+\})/).filter((part) => part !== '')
  const names = parts.map((part) => /^\{([^{}]+)\}$/.exec(part)?.[1])
  const isField = (name: string | undefined) => name !== undefined && name !== 'time'
  const set = parts.flatMap((part, index) => {
    const name = names[index]
    if (name === undefined || !isField(name)) return []
    const field = `record${fieldLiteral([name])}`
    const found = `string(${field}) ?? encode_json(${field})`
    return [`part_${index} = if exists(${field}) { ${found} } else { ${textLiteral(part)} }`]
  })
  const all = parts.map((part, index) => {
    if (isField(names[index])) return `part_${index}`
    return names[index] === 'time' ? 'time' : textLiteral(part)
  })
  return [...set, `.message = ${all.join(' + ')}`]
}
