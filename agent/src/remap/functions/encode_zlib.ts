// Function `encode_zlib`.

import { deflateSync, type ZlibOptions } from 'node:zlib'
import { defineFunction } from '../function.ts'
import { compressing } from '../zlib-functions.ts'

export const encodeZlib = defineFunction({
  ...compressing(compress),
  name: 'encode_zlib',
  summary: 'Compresses a string with zlib.',
  examples: [
    { source: 'decode_zlib!(encode_zlib("abc"))', result: '"abc"' },
    { source: 'decode_zlib!(encode_zlib("gate seven", compression_level: 9))', result: '"gate seven"' },
    { source: 'decode_zlib!(encode_zlib(""))', result: '""' },
  ],
})

/** The header says fast up to level 3, and best at level 9 alone; Node draws these lines elsewhere. */
function compress(data: Buffer, options: ZlibOptions & { readonly level: number }): Buffer {
  const { level } = options
  const compressed = deflateSync(data, options)
  compressed[1] = level <= 1 ? 0x01 : level <= 3 ? 0x5e : level <= 8 ? 0x9c : 0xda
  return compressed
}
