// Function `decode_snappy`.

import type { Bytes } from '../../event/value.ts'
import { snappyUncompress } from '../../formats/snappy.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const mostBytes = 1 << 27

export const decodeSnappy = defineFunction({
  name: 'decode_snappy',
  category: 'Codec',
  summary: 'Decompresses a Snappy block.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The data are not a Snappy block.', 'They give more than 128 MiB.'],
  pure: true,
  examples: [
    { source: 'decode_snappy!(decode_base64!("JAhhYmOCAwA="))', result: '"abcabcabcabcabcabcabcabcabcabcabcabc"' },
    { source: 'decode_snappy!(decode_base16!("00"))', result: '""' },
    { source: 'decode_snappy("no data") ?? "other data"', result: '"other data"' },
  ],
  compile:
    () =>
    (value: string | Bytes): Result => {
      const data = snappyUncompress(bytesOf(value), mostBytes)
      return data === undefined ? failure('unable to decode value with Snappy decoder') : textOf(data)
    },
})
