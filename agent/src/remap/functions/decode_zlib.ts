// Function `decode_zlib`.

import { inflateSync } from 'node:zlib'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const mostBytes = 1 << 27

export const decodeZlib = defineFunction({
  name: 'decode_zlib',
  category: 'Codec',
  summary: 'Decompresses zlib data.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The data is not zlib.', 'It gives more than 128 MiB.'],
  pure: true,
  examples: [
    { source: 'decode_zlib!(decode_base64!("eJxLTEoGAAJNASc="))', result: '"abc"' },
    { source: 'decode_zlib!(encode_zlib("gate seven"))', result: '"gate seven"' },
    { source: 'decode_zlib("no zlib") ?? "no zlib"', result: '"no zlib"' },
  ],
  compile:
    () =>
    (value: string | Bytes): Result => {
      try {
        return textOf(inflateSync(bytesOf(value), { maxOutputLength: mostBytes }))
      } catch {
        return failure('unable to decode value with Zlib decoder')
      }
    },
})
