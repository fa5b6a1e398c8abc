// Function `decode_zlib`.

import { inflateSync } from 'node:zlib'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { decompressedLimit, unreadable, zlib } from '../decompression.ts'
import { defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodeZlib = defineFunction({
  name: 'decode_zlib',
  category: 'Codec',
  summary: 'Decompresses zlib data.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
  returns: kinds.string,
  fallible: 'always',
  growth: 'product',
  errors: ['The data is not zlib.', 'It gives more than 128 MiB, or more than the program may make.'],
  pure: true,
  examples: [
    { source: 'decode_zlib!(decode_base64!("eJxLTEoGAAJNASc="))', result: '"abc"' },
    { source: 'decode_zlib!(encode_zlib("gate seven"))', result: '"gate seven"' },
    { source: 'decode_zlib("no zlib") ?? "no zlib"', result: '"no zlib"' },
  ],
  compile({ runtime: { maxBytes } }) {
    const limit = decompressedLimit(maxBytes)
    const options = { maxOutputLength: limit }
    return (value: string | Bytes): Result => {
      const data = bytesOf(value)
      try {
        return textOf(inflateSync(data, options))
      } catch (error) {
        return unreadable(error, data, zlib, maxBytes, 'unable to decode value with Zlib decoder')
      }
    }
  },
})
