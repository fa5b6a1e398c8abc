// Processors that take texts and lists apart.

import { textLiteral } from '@penstock/agent/config'
import { flagIn, option, textIn } from '../loki/context.ts'
import { pairsOf, textOf } from '../loki/tree.ts'
import { fieldOf, leaves } from './conditions.ts'
import { type Processor, quiet, when } from './processor.ts'

export const decodeBase64: Processor = {
  name: 'decode_base64_field',
  becomes: '`decode_base64`',
  options: { ...when, 'field.from': 'the field with the text', 'field.to': 'the field for the result' },
  itself: quiet,
  build: (part) => {
    const from = textIn(part, 'field.from')
    if (from === undefined) return []
    const to = fieldOf(textIn(part, 'field.to') ?? from)
    return [
      `decoded, error = decode_base64(string(${fieldOf(from)}) ?? "")`,
      `if error == null && is_string(${fieldOf(from)}) { ${to} = decoded }`,
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
    overwrite_keys: 'whether a field that exists is replaced',
    trim_leading_space: 'white space before a column goes',
  },
  itself: quiet,
  build: (part) => {
    const separator = textIn(part, 'separator') ?? ','
    const trims = flagIn(part, 'trim_leading_space') === true
    return pairsOf(option(part, 'fields')).flatMap(([from, to]) => {
      const isFree = flagIn(part, 'overwrite_keys') === true ? '' : ` && !exists(${fieldOf(to || from)})`
      return [
        `columns, error = parse_csv(string(${fieldOf(from)}) ?? "", delimiter: ${textLiteral(separator)})`,
        `if error == null && is_string(${fieldOf(from)})${isFree} {`,
        ...(trims ? [`  columns = map_values(columns) -> |column| { replace(column, r'^\\s+', "") }`] : []),
        `  ${fieldOf(to || from)} = columns`,
        '}',
      ]
    })
  },
}

export const extractArray: Processor = {
  name: 'extract_array',
  becomes: 'a remap transform that reads items by their places',
  options: {
    ...when,
    field: 'the list',
    mappings: 'the fields for its items',
    overwrite_keys: 'whether fields are replaced',
  },
  itself: quiet,
  build: (part) => {
    const list = fieldOf(textIn(part, 'field') ?? '')
    const keeps = flagIn(part, 'overwrite_keys') !== true
    const places = leaves(option(part, 'mappings') ?? part.tree).flatMap(([name, item]) => {
      const place = Number(textOf(item))
      return Number.isInteger(place) && place >= 0 ? [[fieldOf(name), place] as const] : []
    })
    // All of the items are there, and none of the fields, or nothing happens.
    const longest = Math.max(...places.map(([, place]) => place))
    const tests = [`length(items) > ${longest}`, ...(keeps ? places.map(([field]) => `!exists(${field})`) : [])]
    return places.length === 0
      ? []
      : [
          `items = array(${list}) ?? []`,
          `if ${tests.join(' && ')} {`,
          ...places.map(([field, place]) => `  ${field} = items[${place}]`),
          '}',
        ]
  },
}
