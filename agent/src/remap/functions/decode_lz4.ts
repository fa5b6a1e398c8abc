// Function `decode_lz4`.

import type { Bytes } from '../../event/value.ts'
import { decompressBlock, decompressFrame, isFrame } from '../../formats/lz4.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { decompressedLimit, failedAfter, tooLong } from '../decompression.ts'
import { defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodeLz4 = defineFunction({
  name: 'decode_lz4',
  category: 'Codec',
  summary: 'Decompresses an LZ4 frame, or an LZ4 block.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The data.' },
    {
      name: 'buf_size',
      kind: kinds.integer,
      required: false,
      default: 1_000_000,
      description: 'Maximum decompressed size of a block without a stored size.',
    },
    {
      name: 'prepended_size',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether the size precedes the block.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  growth: 'product',
  errors: ['The data is not LZ4.', 'The result would exceed `buf_size`, 128 MiB, or the limit of the program.'],
  pure: true,
  examples: [
    { source: 'decode_lz4!(encode_lz4!("abc", prepend_size: false))', result: '"abc"' },
    { source: 'decode_lz4!(encode_lz4!("gate seven"), prepended_size: true)', result: '"gate seven"' },
    { source: 'decode_lz4("no lz4", prepended_size: true) ?? "no LZ4"', result: '"no LZ4"' },
  ],
  compile({ runtime: { maxBytes } }) {
    const limit = decompressedLimit(maxBytes)
    return (value: string | Bytes, bufferSize: number | bigint, prependedSize: boolean): Result => {
      const bytes = bytesOf(value)
      const frame = isFrame(bytes)
      const problem = `unable to decode value with lz4 ${frame ? 'frame' : 'block'} decoder: `
      let result: Buffer | string
      if (frame) {
        result = decompressFrame(bytes, limit)
      } else if (!prependedSize) {
        result = decompressBlock(bytes, bufferSize < 0 ? limit : Math.min(limit, Number(bufferSize)))
      } else if (bytes.length < 4) {
        result = 'expected another byte, found none'
      } else {
        if (bytes.readUInt32LE() > limit) return tooLong(maxBytes, `${problem}expected another byte, found none`)
        result = decompressBlock(bytes.subarray(4), bytes.readUInt32LE())
      }
      // A byte of a match expands to at most 255 bytes.
      return typeof result === 'string' ? failedAfter(255 * bytes.length, maxBytes, problem + result) : textOf(result)
    }
  },
})
