// Function `encode_gzip`.

import { gzipSync, type ZlibOptions } from 'node:zlib'
import { defineFunction } from '../function.ts'
import { compressing } from '../zlib-functions.ts'

/** A file on no particular system, so that equal strings have equal bytes everywhere. */
function compressed(data: Buffer, options: ZlibOptions): Buffer {
  const file = gzipSync(data, options)
  file[9] = 0xff
  return file
}

export const encodeGzip = defineFunction({
  ...compressing(compressed),
  name: 'encode_gzip',
  summary: 'Compresses a string with gzip.',
  examples: [
    { source: 'decode_gzip!(encode_gzip("abc"))', result: '"abc"' },
    { source: 'decode_gzip!(encode_gzip("gate seven", compression_level: 9))', result: '"gate seven"' },
    { source: 'decode_gzip!(encode_gzip(""))', result: '""' },
  ],
})
