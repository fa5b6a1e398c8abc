// Function `parse_csv`.

import { parseCsvRecord } from '../../formats/csv.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseCsvFunction = defineFunction({
  name: 'parse_csv',
  category: 'Parse',
  summary: 'The columns of the first record of a CSV text.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    {
      name: 'delimiter',
      kind: kinds.string,
      required: false,
      default: ',',
      description: 'One byte between the columns.',
    },
  ],
  returns: kinds.arrayEach(kinds.string),
  fallible: 'always',
  errors: ['The delimiter is not one byte.'],
  pure: true,
  examples: [
    { source: 'parse_csv!("a,\\"b,c\\",d")', result: '["a", "b,c", "d"]' },
    { source: 'parse_csv!("a;b", delimiter: ";")', result: '["a", "b"]' },
    { source: 'parse_csv!("")', result: '[]' },
  ],
  compile: () => (text: string, delimiter: string) =>
    Buffer.byteLength(delimiter) === 1
      ? parseCsvRecord(text, delimiter)
      : failure('delimiter must be a single character'),
})
