// Function `decode_gzip`.

import { gunzipSync } from 'node:zlib'
import { gzip } from '../decompression.ts'
import { defineFunction } from '../function.ts'
import { decompressing } from '../zlib-functions.ts'

export const decodeGzip = defineFunction({
  ...decompressing('gzip', gzip, gunzipSync),
  name: 'decode_gzip',
  summary: 'Decompresses gzip data.',
  examples: [
    { source: 'decode_gzip!(decode_base64!("H4sIAAAAAAAAA0tMSgYAwkEkNQMAAAA="))', result: '"abc"' },
    { source: 'decode_gzip!(encode_gzip("gate seven"))', result: '"gate seven"' },
    { source: 'decode_gzip("no gzip") ?? "no gzip"', result: '"no gzip"' },
  ],
})
