// Function `encode_zlib`.

import { deflateSync } from 'node:zlib'
import { defineFunction } from '../function.ts'
import { compressing } from '../zlib-functions.ts'

export const encodeZlib = defineFunction({
  ...compressing(deflateSync),
  name: 'encode_zlib',
  summary: 'Compresses a string with zlib.',
  examples: [
    { source: 'decode_zlib!(encode_zlib("abc"))', result: '"abc"' },
    { source: 'decode_zlib!(encode_zlib("gate seven", compression_level: 9))', result: '"gate seven"' },
    { source: 'decode_zlib!(encode_zlib(""))', result: '""' },
  ],
})
