// Function `encode_base64`.

import type { Bytes } from '../../event/value.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { charset } from '../parameters.ts'

export const encodeBase64 = defineFunction({
  name: 'encode_base64',
  category: 'Codec',
  summary: 'Encodes the bytes of a string in Base64.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    { name: 'padding', kind: kinds.boolean, required: false, default: true, description: 'Fill up with `=`.' },
    charset,
  ],
  returns: kinds.string,
  fallible: 'never',
  failsUnannounced: true,
  errors: ['The alphabet is unknown.'],
  pure: true,
  examples: [
    { source: 'encode_base64("a")', result: '"YQ=="' },
    { source: 'encode_base64("??>>", charset: "url_safe", padding: false)', result: '"Pz8-Pg"' },
    { source: 'encode_base64("")', result: '""' },
    {
      source: 'encode_base64("a", charset: "base58")',
      result: 'fails: function call error for "encode_base64" at (0:37): unknown charset',
    },
  ],
  compile:
    () =>
    (value: string | Bytes, padding: boolean, charset: string): Result => {
      if (charset !== 'standard' && charset !== 'url_safe') return failure('unknown charset')
      const text = bytesOf(value).toString(charset === 'url_safe' ? 'base64url' : 'base64')
      if (charset === 'standard') return padding ? text : text.replace(/=+$/, '')
      return padding ? text.padEnd(Math.ceil(text.length / 4) * 4, '=') : text
    },
})
