// Formatters of Fluentd that write a text for each record: lines that put the text into `.message`, which the codec `text` of a sink writes.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { lastValue } from '../fluent-bit/sections.ts'
import { isOn, listOf, type Plugged } from './element.ts'
import { recordPath } from './ruby.ts'
import type { OutputPlugin } from './translation.ts'

type Read = (key: string) => string | undefined

/** A value as the text that Fluentd writes; arrays and objects as JSON. */
const textOf = (value: string) => `to_string(${value}) ?? encode_json(${value})`

const listed = (names: readonly string[]) =>
  `[${names.map((name) => fieldLiteral(recordPath(name) ?? [name])).join(', ')}]`

const formatters: Readonly<Record<string, (read: Read) => readonly string[]>> = {
  single_value: (read) => {
    const field = fieldLiteral(recordPath(read('message_key') ?? 'message') ?? ['message'])
    return [`.message = ${textOf(field)}`]
  },
  csv: (read) => {
    const delimiter = read('delimiter') ?? ','
    const sign = delimiter.toUpperCase() === 'TAB' || delimiter === '\\t' ? '\t' : delimiter
    const quoted = '"\\"" + replace(text, "\\"", "\\"\\"") + "\\""'
    const needed = `match(text, r'^ |["\\r\\n]') || contains(text, ${textLiteral(sign)}) || (text == "" && value != null)`
    return [
      `texts = map_values(${listed(listOf(read('fields')))}) -> |value| {`,
      `  text = ${textOf('value')}`,
      isOn(read('force_quotes'), true) ? `  ${quoted}` : `  if ${needed} { ${quoted} } else { text }`,
      '}',
      `.message = join(texts, ${textLiteral(sign)}) ?? ""`,
    ]
  },
  tsv: (read) => [
    `texts = map_values(${listed(listOf(read('keys')))}) -> |value| { ${textOf('value')} }`,
    `.message = join(texts, ${textLiteral(read('delimiter') ?? '\t')}) ?? ""`,
  ],
  ltsv: (read) => {
    const delimiter = textLiteral(read('delimiter') ?? '\t')
    const by = textLiteral(read('replacement') ?? ' ')
    return [
      'record = .',
      'del(record.timestamp)',
      'texts = []',
      'for_each(record) -> |key, value| {',
      `  text = replace(${textOf('value')}, ${delimiter}, ${by})`,
      `  texts = push(texts, key + ${textLiteral(read('label_delimiter') ?? ':')} + text)`,
      '}',
      `.message = join(texts, ${delimiter}) ?? ""`,
    ]
  },
}

const names: Readonly<Record<string, string>> = {
  fields: 'the columns, with the type `csv`',
  force_quotes: 'whether every column is in quotes, with the type `csv`',
  keys: 'the columns, with the type `tsv`',
  delimiter: 'between columns',
  label_delimiter: 'between name and value, with the type `ltsv`',
  replacement: 'in place of delimiters in values, with the type `ltsv`',
  message_key: 'the field that is the line, with the type `single_value`',
}

/** Options of `<format>`, and those of early versions, which are options of the output. */
export const formatOptions = Object.fromEntries(
  Object.entries(names).map(([name, becomes]) => [`format.${name}`, becomes] as const),
)
export const oldFormatOptions = names

export const formatItself: NonNullable<OutputPlugin['itself']> = {
  'format.add_newline': {
    how: 'a line feed ends each event',
    unless: /^(?:false|no)$/,
    reason: 'the sink writes a line feed after each event',
    nearest: 'Let the receiver read lines.',
  },
}

/** The lines for the format of an output; undefined for a format that is not a text of this kind. */
export function formatLines(section: Plugged, type: string): readonly string[] | undefined {
  const read: Read = (key) => lastValue(section, `format.${key}`) ?? lastValue(section, key)
  return Object.hasOwn(formatters, type) ? formatters[type]?.(read) : undefined
}
