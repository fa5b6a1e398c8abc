// Function `encode_lz4`.

import type { Bytes } from '../../event/value.ts'
import { compressBlock } from '../../formats/lz4.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodeLz4 = defineFunction({
  name: 'encode_lz4',
  category: 'Codec',
  summary: 'Compresses a string to an LZ4 block.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    {
      name: 'prepend_size',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether to put the size before the block, as 4 bytes.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  pure: true,
  examples: [
    { source: 'decode_lz4!(encode_lz4!("abcabcabcabcabcabc"), prepended_size: true)', result: '"abcabcabcabcabcabc"' },
    { source: 'length(encode_lz4!("gate"))', result: '9' },
    { source: 'decode_lz4!(encode_lz4!("gate seven", prepend_size: false))', result: '"gate seven"' },
  ],
  compile: () => (value: string | Bytes, prependSize: boolean) => {
    const bytes = bytesOf(value)
    const block = compressBlock(bytes)
    if (!prependSize) return textOf(block)
    const size = Buffer.alloc(4)
    size.writeUInt32LE(bytes.length)
    return textOf(Buffer.concat([size, block]))
  },
})
