// Function `decode_zstd`.

import { constants, zstdDecompressSync } from 'node:zlib'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { decompressedLimit, unreadable, zstd } from '../decompression.ts'
import { defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodeZstd = defineFunction({
  name: 'decode_zstd',
  category: 'Codec',
  summary: 'Decompresses Zstandard data.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
  returns: kinds.string,
  fallible: 'always',
  growth: 'product',
  errors: ['The data is not Zstandard.', 'The result would exceed 128 MiB, or the limit of the program.'],
  pure: true,
  examples: [
    { source: 'decode_zstd!(encode_zstd("abc", compression_level: 1))', result: '"abc"' },
    { source: 'decode_zstd!(encode_zstd("gate seven"))', result: '"gate seven"' },
    { source: 'decode_zstd("no zstd") ?? "no Zstandard"', result: '"no Zstandard"' },
  ],
  compile({ runtime: { maxBytes } }) {
    const limit = decompressedLimit(maxBytes)
    const options = {
      maxOutputLength: limit,
      params: { [constants.ZSTD_d_windowLogMax]: Math.floor(Math.log2(limit)) },
    }
    return (value: string | Bytes): Result => {
      const data = bytesOf(value)
      try {
        return textOf(zstdDecompressSync(data, options))
      } catch (error) {
        return unreadable(error, data, zstd, maxBytes, 'unable to decode value with Zstd decoder')
      }
    }
  },
})
