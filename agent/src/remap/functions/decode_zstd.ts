// Function `decode_zstd`.

import { zstdDecompressSync } from 'node:zlib'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const mostBytes = 1 << 27

export const decodeZstd = defineFunction({
  name: 'decode_zstd',
  category: 'Codec',
  summary: 'Decompresses Zstandard data.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The data is not Zstandard.', 'It gives more than 128 MiB.'],
  pure: true,
  examples: [
    { source: 'decode_zstd!(encode_zstd("abc", compression_level: 1))', result: '"abc"' },
    { source: 'decode_zstd!(encode_zstd("gate seven"))', result: '"gate seven"' },
    { source: 'decode_zstd("no zstd") ?? "no Zstandard"', result: '"no Zstandard"' },
  ],
  compile:
    () =>
    (value: string | Bytes): Result => {
      try {
        return textOf(zstdDecompressSync(bytesOf(value), { maxOutputLength: mostBytes }))
      } catch {
        return failure('unable to decode value with Zstd decoder')
      }
    },
})
