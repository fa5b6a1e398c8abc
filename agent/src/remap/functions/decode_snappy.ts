// Function `decode_snappy`.

import type { Bytes } from '../../event/value.ts'
import { snappyLength, snappyUncompress } from '../../formats/snappy.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { decompressedLimit, failedAfter, tooLong } from '../decompression.ts'
import { defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodeSnappy = defineFunction({
  name: 'decode_snappy',
  category: 'Codec',
  summary: 'Decompresses a Snappy block.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
  returns: kinds.string,
  fallible: 'always',
  growth: 'product',
  errors: ['The data is not a Snappy block.', 'The result would exceed 128 MiB, or the limit of the program.'],
  pure: true,
  examples: [
    { source: 'decode_snappy!(decode_base64!("JAhhYmOCAwA="))', result: '"abcabcabcabcabcabcabcabcabcabcabcabc"' },
    { source: 'decode_snappy!(decode_base16!("00"))', result: '""' },
    { source: 'decode_snappy("no data") ?? "other data"', result: '"other data"' },
  ],
  compile({ runtime: { maxBytes } }) {
    const limit = decompressedLimit(maxBytes)
    const problem = 'unable to decode value with Snappy decoder'
    return (value: string | Bytes): Result => {
      const bytes = bytesOf(value)
      if (snappyLength(bytes) > limit) return tooLong(maxBytes, problem)
      const data = snappyUncompress(bytes, limit)
      return data === undefined
        ? failedAfter(Math.min(snappyLength(bytes), 64 * bytes.length), maxBytes, problem)
        : textOf(data)
    }
  },
})
