// Function `sha2`.

import { createHash } from 'node:crypto'
import type { Bytes } from '../../event/value.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

const algorithms: Readonly<Record<string, string>> = {
  'SHA-224': 'sha224',
  'SHA-256': 'sha256',
  'SHA-384': 'sha384',
  'SHA-512': 'sha512',
  'SHA-512/224': 'sha512-224',
  'SHA-512/256': 'sha512-256',
}

export const sha2 = defineFunction({
  name: 'sha2',
  category: 'Cryptography',
  summary: 'Returns a SHA-2 hash of a string in hexadecimal digits.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    {
      name: 'variant',
      kind: kinds.string,
      required: false,
      default: 'SHA-512/256',
      enum: Object.keys(algorithms),
      description: 'The algorithm.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'sha2("a")', result: '"455e518824bc0601f9fb858ff5c37d417d67c2f8e0df2babe4808858aea830f8"' },
    {
      source: 'sha2("a", variant: "SHA-256")',
      result: '"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"',
    },
    { source: 'length(sha2("a", variant: "SHA-512"))', result: '128' },
  ],
  compile(call) {
    const algorithm = algorithms[call.constant('variant') as string] as string
    return (value: string | Bytes) => createHash(algorithm).update(bytesOf(value)).digest('hex')
  },
})
