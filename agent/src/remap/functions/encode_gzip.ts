// Function `encode_gzip`.

import { gzipSync } from 'node:zlib'
import { defineFunction } from '../function.ts'
import { compressing } from '../zlib-functions.ts'

export const encodeGzip = defineFunction({
  ...compressing(gzipSync),
  name: 'encode_gzip',
  summary: 'Compresses a string with gzip.',
  examples: [
    { source: 'decode_gzip!(encode_gzip("abc"))', result: '"abc"' },
    { source: 'decode_gzip!(encode_gzip("gate seven", compression_level: 9))', result: '"gate seven"' },
    { source: 'decode_gzip!(encode_gzip(""))', result: '""' },
  ],
})
