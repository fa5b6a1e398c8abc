// Function `seahash`.

import { type Bytes, integer } from '../../event/value.ts'
import { seaHash } from '../../formats/hash.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const seahash = defineFunction({
  name: 'seahash',
  category: 'Cryptography',
  summary: 'Returns the SeaHash of a string as a signed integer.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The string.' }],
  returns: kinds.integer,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'seahash("gate")', result: '-3424087633287435420' },
    { source: 'seahash("")', result: '-3953938083091587911' },
    { source: 'seahash("penstock")', result: '-8038027767391307000' },
  ],
  compile: () => (value: string | Bytes) => integer(BigInt.asIntN(64, seaHash(bytesOf(value)))),
})
