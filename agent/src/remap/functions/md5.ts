// Function `md5`.

import { createHash } from 'node:crypto'
import type { Bytes } from '../../event/value.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const md5 = defineFunction({
  name: 'md5',
  category: 'Cryptography',
  summary: 'Returns the MD5 hash of a string in hexadecimal digits.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The string.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'md5("")', result: '"d41d8cd98f00b204e9800998ecf8427e"' },
    { source: 'md5("gate")', result: '"63d721d24d2dde776e05e4b8c47f08a3"' },
    { source: 'md5("é")', result: '"66ddcd97cfdeabb2f6fb8a999b4bc76f"' },
  ],
  compile: () => (value: string | Bytes) => createHash('md5').update(bytesOf(value)).digest('hex'),
})
