// Function `encode_zstd`.

import { constants, zstdCompressSync } from 'node:zlib'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodeZstd = defineFunction({
  name: 'encode_zstd',
  category: 'Codec',
  summary: 'Compresses a string with Zstandard.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    { name: 'compression_level', kind: kinds.integer, required: false, default: 3, description: 'From 1 to 22.' },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'decode_zstd!(encode_zstd("abc"))', result: '"abc"' },
    { source: 'decode_zstd!(encode_zstd("gate seven", compression_level: 9))', result: '"gate seven"' },
    { source: 'decode_zstd!(encode_zstd(""))', result: '""' },
  ],
  compile: () => (value: string | Bytes, level: number | bigint) =>
    textOf(
      zstdCompressSync(bytesOf(value), {
        params: { [constants.ZSTD_c_compressionLevel]: Math.max(1, Math.min(22, Number(level))) },
      }),
    ),
})
