// Lines of text that outputs of Fluent Bit write in place of JSON: `.message` gets the line, and the sink writes it by the codec `text`.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'

/** Lines that set `record` to what is written: the record without the time beside it and some fields. */
const recordLines = (removed: readonly (readonly string[])[]): readonly string[] => [
  'record = .',
  'del(record.timestamp)',
  ...removed.map((path) => `del(record${fieldLiteral(path)})`),
]

/** The form of Fluentd's plugin: texts in quotes where they have spaces or signs, with quotes and backslashes marked. */
const pluginText = [
  '  text = replace(replace(string(value) ?? encode_json(value), "\\\\", "\\\\\\\\"), "\\"", "\\\\\\"")',
  '  if contains(text, " ") || contains(text, "=") { text = "\\"" + text + "\\"" }',
]

/** `key="text" number=1`, or the value alone of a record with one field. */
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
        ...(format === 'plugin'
          ? pluginText
          : ['  text = if is_string(value) { "\\"" + string!(value) + "\\"" } else { encode_json(value) }']),
        '  parts = push(parts, key + "=" + text)',
        '}',
        'line = join(parts, " ") ?? ""',
      ]
  const only = dropsSingle === 'raw' || !isJson ? 'string(only) ?? encode_json(only)' : 'encode_json(only)'
  const single =
    dropsSingle === undefined
      ? []
      : ['if length(record) == 1 {', '  only = get(values(record), [0]) ?? null', `  line = ${only}`, '}']
  return [...recordLines(removed), ...whole, ...single, '.message = line']
}

/** Columns of a file: `csv`, `ltsv`, a template, or the tag and the time before JSON. */
export function fileLines(
  format: string,
  options: {
    readonly delimiter?: string | undefined
    readonly label?: string | undefined
    readonly template?: string | undefined
  },
  tag: readonly string[],
): readonly string[] | undefined {
  const seconds = 'to_unix_timestamp(timestamp(.timestamp) ?? now(), unit: "nanoseconds") / 1000000000.0'
  const start = [...recordLines([]), `time = format_number(${seconds}, scale: 9)`]
  if (format === 'out_file')
    return [...start, ...tag, '.message = tag + ": [" + time + ", " + encode_json(record) + "]"']
  if (format === 'template') return [...start, `.message = ${templateOf(options.template ?? '{time} {message}')}`]
  const members = (part: string, delimiter: string, first: string) => [
    ...start,
    `parts = [${first}]`,
    'for_each(record) -> |key, value| {',
    '  text = if is_string(value) { string!(value) } else { encode_json(value) }',
    `  parts = push(parts, ${part})`,
    '}',
    `.message = join(parts, ${textLiteral(delimiter)}) ?? ""`,
  ]
  if (format === 'csv') return members('"\\"" + text + "\\""', delimiterOf(options.delimiter, ','), 'time')
  if (format !== 'ltsv') return undefined
  const label = textLiteral(delimiterOf(options.label, ':'))
  return members(`key + ${label} + text`, delimiterOf(options.delimiter, '\t'), `"time" + ${label} + time`)
}

function delimiterOf(text: string | undefined, usual: string): string {
  const words: Readonly<Record<string, string>> = { '\\t': '\t', tab: '\t', space: ' ', comma: ',' }
  return text === undefined ? usual : (words[text.toLowerCase()] ?? text)
}

function templateOf(text: string): string {
  const parts = text.split(/(\{[^{}]+\})/).filter((part) => part !== '')
  return parts
    .map((part) => {
      const name = /^\{([^{}]+)\}$/.exec(part)?.[1]
      if (name === undefined) return textLiteral(part)
      const field = `record${fieldLiteral([name])}`
      return name === 'time' ? 'time' : `(string(${field}) ?? encode_json(${field}))`
    })
    .join(' + ')
}
