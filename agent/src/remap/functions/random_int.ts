// Function `random_int`.

import { randomBytes } from 'node:crypto'
import { integer, isInteger } from '../../event/value.ts'
import { type CallSite, defineFunction, failure, toBigint } from '../function.ts'
import { kinds } from '../kind.ts'

export const randomIntFunction = defineFunction({
  name: 'random_int',
  category: 'Random',
  summary: 'Returns a random integer.',
  parameters: [
    { name: 'min', kind: kinds.integer, description: 'The smallest.' },
    { name: 'max', kind: kinds.integer, description: 'Exclusive upper limit.' },
  ],
  returns: kinds.integer,
  fallible: (call) => call.constant('min') === undefined || call.constant('max') === undefined,
  errors: ['`max` is not greater than `min`.'],
  pure: false,
  examples: [
    { source: 'random_int(0, 10) < 10', result: 'true' },
    { source: 'random_int(0, 10) >= 0', result: 'true' },
    { source: 'random_int(7, 8)', result: '7' },
  ],
  compile(call: CallSite) {
    const [min, max] = [call.constant('min'), call.constant('max')]
    if (isInteger(min) && isInteger(max) && max <= min) call.reject('max must be greater than min')
    return (min: number | bigint, max: number | bigint) => {
      if (max <= min) return failure('max must be greater than min')
      const span = toBigint(max) - toBigint(min)
      return integer(toBigint(min) + (randomBytes(16).readBigUInt64LE() % span))
    }
  },
})
