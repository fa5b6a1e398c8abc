// Function `sha1`.

import { createHash } from 'node:crypto'
import type { Bytes } from '../../event/value.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const sha1 = defineFunction({
  name: 'sha1',
  category: 'Cryptography',
  summary: 'Returns the SHA-1 hash of a string in hexadecimal digits.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The string.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'sha1("")', result: '"da39a3ee5e6b4b0d3255bfef95601890afd80709"' },
    { source: 'sha1("gate")', result: '"3c5b492776742690efb6a0f1fd8508693400e2cc"' },
    { source: 'sha1("é")', result: '"bf15be717ac1b080b4f1c456692825891ff5073d"' },
  ],
  compile: () => (value: string | Bytes) => createHash('sha1').update(bytesOf(value)).digest('hex'),
})
