// Function `random_bytes`.

import { randomBytes } from 'node:crypto'
import { isInteger } from '../../event/value.ts'
import { textOf } from '../byte-text.ts'
import { type CallSite, defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

const maxLength = 65_536

export const randomBytesFunction = defineFunction({
  name: 'random_bytes',
  category: 'Random',
  summary: 'Returns a string of random bytes.',
  parameters: [{ name: 'length', kind: kinds.integer, description: 'Number of bytes, up to 65536.' }],
  returns: kinds.string,
  fallible: (call) => !isInteger(call.constant('length')),
  errors: ['The number is negative or too large.'],
  pure: false,
  examples: [
    { source: 'length(random_bytes(16))', result: '16' },
    { source: 'length(random_bytes(0))', result: '0' },
    { source: 'random_bytes(16) != random_bytes(16)', result: 'true' },
  ],
  compile(call: CallSite) {
    const given = call.constant('length')
    if (isInteger(given) && (given < 0 || given > maxLength)) call.reject(`length must be between 0 and ${maxLength}`)
    return (length: number | bigint) =>
      length < 0 || length > maxLength
        ? failure(`length must be between 0 and ${maxLength}`)
        : textOf(randomBytes(Number(length)))
  },
})
