// Function `decode_gzip`.

import { gunzipSync } from 'node:zlib'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { decompressedLimit, gzip, unreadable } from '../decompression.ts'
import { defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodeGzip = defineFunction({
  name: 'decode_gzip',
  category: 'Codec',
  summary: 'Decompresses gzip data.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
  returns: kinds.string,
  fallible: 'always',
  growth: 'product',
  errors: ['The data is not gzip.', 'It gives more than 128 MiB, or more than the program may make.'],
  pure: true,
  examples: [
    { source: 'decode_gzip!(decode_base64!("H4sIAAAAAAAAA0tMSgYAwkEkNQMAAAA="))', result: '"abc"' },
    { source: 'decode_gzip!(encode_gzip("gate seven"))', result: '"gate seven"' },
    { source: 'decode_gzip("no gzip") ?? "no gzip"', result: '"no gzip"' },
  ],
  compile({ runtime: { maxBytes } }) {
    const limit = decompressedLimit(maxBytes)
    const options = { maxOutputLength: limit }
    return (value: string | Bytes): Result => {
      const data = bytesOf(value)
      try {
        return textOf(gunzipSync(data, options))
      } catch (error) {
        return unreadable(error, data, gzip, maxBytes, 'unable to decode value with Gzip decoder')
      }
    }
  },
})
