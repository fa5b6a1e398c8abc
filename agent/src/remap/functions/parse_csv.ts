// Function `parse_csv`.

import type { Bytes } from '../../event/value.ts'
import { parseCsvRecord } from '../../formats/csv.ts'
import { textOf } from '../byte-text.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseCsvFunction = defineFunction({
  name: 'parse_csv',
  category: 'Parse',
  summary: 'Parses the first record of a CSV text to an array of columns.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The text.' },
    {
      name: 'delimiter',
      kind: kinds.string,
      required: false,
      default: ',',
      description: 'Delimiter between columns, one byte.',
    },
  ],
  returns: kinds.arrayEach(kinds.string),
  fallible: 'always',
  errors: ['The delimiter is not one byte.'],
  pure: true,
  examples: [
    { source: 'parse_csv!("a,\\"b,c\\",d")', result: '["a", "b,c", "d"]' },
    { source: 'parse_csv!("a;b", delimiter: ";")', result: '["a", "b"]' },
    {
      source: 'encode_base16(string!(parse_csv!(decode_base16!("612c62ff"))[1]))',
      result: '"62ff"',
    },
    { source: 'parse_csv!("")', result: '[]' },
  ],
  compile: () => (text: string | Bytes, delimiter: string) => {
    if (Buffer.byteLength(delimiter) !== 1) return failure('delimiter must be a single character')
    if (typeof text === 'string') return parseCsvRecord(text, delimiter)
    // Delimiters and quotes are ASCII, so bytes that are not text stay unchanged.
    return parseCsvRecord(text.bytes.toString('latin1'), delimiter).map((item) => textOf(Buffer.from(item, 'latin1')))
  },
})
