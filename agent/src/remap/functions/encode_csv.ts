// Function `encode_csv`.

import { Bytes, type Value } from '../../event/value.ts'
import { compileCsvWriter, standardCsv } from '../../formats/csv.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

export const encodeCsv = defineFunction({
  name: 'encode_csv',
  category: 'Codec',
  summary: 'A CSV record of an array of strings, quoted where needed.',
  parameters: [
    { name: 'value', kind: kinds.any, description: 'The strings.' },
    {
      name: 'delimiter',
      kind: kinds.string,
      required: false,
      default: ',',
      description: 'One byte between the columns.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The value is not an array of strings.', 'The delimiter is not one byte.'],
  pure: true,
  examples: [
    { source: 'encode_csv!(["a", "b,c"])', result: '"a,\\"b,c\\""' },
    { source: 'encode_csv!(["say \\"hi\\"", ""])', result: '"\\"say \\"\\"hi\\"\\"\\","' },
    { source: 'encode_csv!(["a", "b"], delimiter: ";")', result: '"a;b"' },
  ],
  compile:
    () =>
    (value: Value, delimiter: string): Result => {
      if (!Array.isArray(value)) return failure(`expected array, got ${textOfKind(value)}`)
      if (Buffer.byteLength(delimiter) !== 1) return failure('delimiter must be a single character')
      for (const item of value) {
        if (typeof item !== 'string' && !(item instanceof Bytes))
          return failure(`expected string, got ${textOfKind(item)}`)
      }
      return compileCsvWriter({ ...standardCsv, delimiter })(value.map(String))
    },
})
