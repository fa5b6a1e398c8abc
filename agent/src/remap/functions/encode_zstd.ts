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
    {
      name: 'compression_level',
      kind: kinds.integer,
      required: false,
      default: 3,
      description: 'From 1 to 22; 0 means 3.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'decode_zstd!(encode_zstd("abc"))', result: '"abc"' },
    { source: 'decode_zstd!(encode_zstd("gate seven", compression_level: 9))', result: '"gate seven"' },
    { source: 'decode_zstd!(encode_zstd(""))', result: '""' },
  ],
  compile: () => (value: string | Bytes, level: number | bigint) => textOf(compress(bytesOf(value), narrow(level))),
})

/** Levels are cut to 32 bits before the library limits them. */
function narrow(level: number | bigint): number {
  const cut = typeof level === 'bigint' ? Number(BigInt.asIntN(32, level)) : level | 0
  return cut === 0 ? defaultLevel : Math.max(-131_072, Math.min(maxLevel, cut))
}

const defaultLevel = 3
const maxLevel = 22

/** As a stream: the header contains no size, and the parameters are those for data of unknown size. */
function compress(data: Buffer, level: number): Buffer {
  if (data.length === 0) return zstdCompressSync(data)
  const compressed = zstdCompressSync(data, {
    params: {
      [constants.ZSTD_c_compressionLevel]: level,
      [constants.ZSTD_c_contentSizeFlag]: 0,
      ...(level === defaultLevel && defaultParameters),
    },
  })
  // The byte after the magic number and the flags: Node limits the window to the data.
  compressed[5] = ((windows[Math.max(0, level)] as number) - 10) << 3
  return compressed
}

/** The library's parameters at the default level for data of unknown size. */
const defaultParameters = {
  [constants.ZSTD_c_strategy]: constants.ZSTD_dfast,
  [constants.ZSTD_c_minMatch]: 5,
  [constants.ZSTD_c_chainLog]: 16,
  [constants.ZSTD_c_hashLog]: 17,
}

/** Window of each level as a power of two; the first is that of all negative levels. */
const windows = [19, 19, 20, 21, 21, 21, 21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 25, 26, 27]
