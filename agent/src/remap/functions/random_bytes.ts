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
    const problem = isInteger(given) ? problemOf(given) : undefined
    if (problem !== undefined) call.reject(problem)
    return (length: number | bigint) => {
      const problem = problemOf(length)
      return problem === undefined ? textOf(randomBytes(Number(length))) : failure(problem)
    }
  },
})

function problemOf(length: number | bigint): string | undefined {
  if (length < 0) return 'Length cannot be negative'
  return length > maxLength ? 'Length is too large. Maximum is 64k' : undefined
}
