// Function `encode_snappy`.

import type { Bytes } from '../../event/value.ts'
import { snappyCompress } from '../../formats/snappy.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const maxBytes = 0xffff_ffff

export const encodeSnappy = defineFunction({
  name: 'encode_snappy',
  category: 'Codec',
  summary: 'Compresses a string to a Snappy block.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The string.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The string is too long.'],
  pure: true,
  examples: [
    { source: 'encode_base64(encode_snappy!("abcabcabcabcabcabcabcabcabcabcabcabc"))', result: '"JAhhYmOCAwA="' },
    { source: 'encode_base16(encode_snappy!(""))', result: '"00"' },
    { source: 'decode_snappy!(encode_snappy!("gate seven"))', result: '"gate seven"' },
  ],
  compile:
    () =>
    (value: string | Bytes): Result => {
      const bytes = bytesOf(value)
      return bytes.length > maxBytes
        ? failure('unable to encode value with Snappy encoder')
        : textOf(snappyCompress(bytes))
    },
})
