// Function `encode_zlib`.

import { deflateSync } from 'node:zlib'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodeZlib = defineFunction({
  name: 'encode_zlib',
  category: 'Codec',
  summary: 'Compresses a string with zlib.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    { name: 'compression_level', kind: kinds.integer, required: false, default: 6, description: 'From 0 to 9.' },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'decode_zlib!(encode_zlib("abc"))', result: '"abc"' },
    { source: 'decode_zlib!(encode_zlib("gate seven", compression_level: 9))', result: '"gate seven"' },
    { source: 'decode_zlib!(encode_zlib(""))', result: '""' },
  ],
  compile: () => (value: string | Bytes, level: number | bigint) =>
    textOf(deflateSync(bytesOf(value), { level: Math.max(0, Math.min(9, Number(level))) })),
})
