// Function `encode_gzip`.

import { gzipSync } from 'node:zlib'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodeGzip = defineFunction({
  name: 'encode_gzip',
  category: 'Codec',
  summary: 'Compresses a string with gzip.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    { name: 'compression_level', kind: kinds.integer, required: false, default: 6, description: 'From 0 to 9.' },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'decode_gzip!(encode_gzip("abc"))', result: '"abc"' },
    { source: 'decode_gzip!(encode_gzip("gate seven", compression_level: 9))', result: '"gate seven"' },
    { source: 'decode_gzip!(encode_gzip(""))', result: '""' },
  ],
  compile: () => (value: string | Bytes, level: number | bigint) =>
    textOf(gzipSync(bytesOf(value), { level: Math.max(0, Math.min(9, Number(level))) })),
})
