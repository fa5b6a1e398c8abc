// Function `decode_zlib`.

import { inflateSync } from 'node:zlib'
import { zlib } from '../decompression.ts'
import { defineFunction } from '../function.ts'
import { decompressing } from '../zlib-functions.ts'

export const decodeZlib = defineFunction({
  ...decompressing('zlib', zlib, inflateSync),
  name: 'decode_zlib',
  summary: 'Decompresses zlib data.',
  description: 'Data that are cut off give what they contain, and other data may follow them.',
  examples: [
    { source: 'decode_zlib!(decode_base64!("eJxLTEoGAAJNASc="))', result: '"abc"' },
    { source: 'decode_zlib!(encode_zlib("gate seven"))', result: '"gate seven"' },
    { source: 'decode_zlib("no zlib") ?? "no zlib"', result: '"no zlib"' },
  ],
})
