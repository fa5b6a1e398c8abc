// Function `encode_base16`.

import type { Bytes } from '../../event/value.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodeBase16 = defineFunction({
  name: 'encode_base16',
  category: 'Codec',
  summary: 'Encodes the bytes of a string as lower-case hexadecimal digits.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The string.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'encode_base16("some")', result: '"736f6d65"' },
    { source: 'encode_base16("")', result: '""' },
    { source: 'encode_base16("é")', result: '"c3a9"' },
  ],
  compile: () => (value: string | Bytes) => bytesOf(value).toString('hex'),
})
