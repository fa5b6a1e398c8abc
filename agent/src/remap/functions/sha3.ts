// Function `sha3`.

import { createHash } from 'node:crypto'
import type { Bytes } from '../../event/value.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const sha3 = defineFunction({
  name: 'sha3',
  category: 'Cryptography',
  summary: 'Returns a SHA-3 hash of a string in hexadecimal digits.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    {
      name: 'variant',
      kind: kinds.string,
      required: false,
      default: 'SHA3-512',
      enum: ['SHA3-224', 'SHA3-256', 'SHA3-384', 'SHA3-512'],
      description: 'The algorithm.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    {
      source: 'sha3("penstock", variant: "SHA3-224")',
      result: '"122f54c38b39d70dbc53c32ef8b1b0d94f81d052dd837011b73f1c78"',
    },
    { source: 'length(sha3("penstock"))', result: '128' },
    {
      source: 'sha3("", variant: "SHA3-256")',
      result: '"a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"',
    },
  ],
  compile(call) {
    const algorithm = (call.constant('variant') as string).toLowerCase()
    return (value: string | Bytes) => createHash(algorithm).update(bytesOf(value)).digest('hex')
  },
})
