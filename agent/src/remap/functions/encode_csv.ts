// Function `encode_csv`.

import { Bytes, type Value } from '../../event/value.ts'
import { compileCsvWriter, standardCsv } from '../../formats/csv.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

export const encodeCsv = defineFunction({
  name: 'encode_csv',
  category: 'Codec',
  summary: 'Encodes an array of strings as a CSV record, with quotes where needed.',
  parameters: [
    { name: 'value', kind: kinds.any, bytes: true, description: 'The strings.' },
    {
      name: 'delimiter',
      kind: kinds.string,
      required: false,
      default: ',',
      description: 'Delimiter between columns, one byte.',
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
    { source: 'encode_base16(encode_csv!(["a", decode_base16!("ff22")]))', result: '"612c22ff222222"' },
    { source: 'encode_csv!([""])', result: '"\\"\\""' },
  ],
  compile:
    () =>
    (value: Value, delimiter: string): Result => {
      if (!Array.isArray(value)) return failure(`expected array, got ${textOfKind(value)}`)
      let bytes = false
      for (const item of value) {
        if (item instanceof Bytes) bytes = true
        else if (typeof item !== 'string') return failure(`expected string, got ${textOfKind(item)}`)
      }
      if (value.length === 0) return ''
      if (Buffer.byteLength(delimiter) !== 1) return failure('delimiter must be a single character')
      const write = compileCsvWriter({ ...standardCsv, delimiter })
      // An empty line would not be a record.
      if (!bytes) return write(value as string[]) || '""'
      const columns = (value as (string | Bytes)[]).map((item) => bytesOf(item).toString('latin1'))
      return textOf(Buffer.from(write(columns), 'latin1'))
    },
})
