// Function `random_float`.

import { type Float, float, isFloat } from '../../event/value.ts'
import { type CallSite, defineFunction, failure, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'

export const randomFloat = defineFunction({
  name: 'random_float',
  category: 'Random',
  summary: 'Returns a random float.',
  parameters: [
    { name: 'min', kind: kinds.float, description: 'The smallest.' },
    { name: 'max', kind: kinds.float, description: 'Exclusive upper limit.' },
  ],
  returns: kinds.float,
  fallible: (call) => call.constant('min') === undefined || call.constant('max') === undefined,
  errors: ['`max` is not greater than `min`.'],
  pure: false,
  examples: [
    { source: 'random_float(1.0, 2.0) < 2.0', result: 'true' },
    { source: 'random_float(1.0, 2.0) >= 1.0', result: 'true' },
    { source: 'is_float(random_float(-1.0, 1.0))', result: 'true' },
  ],
  compile(call: CallSite) {
    const [min, max] = [call.constant('min'), call.constant('max')]
    if (isFloat(min) && isFloat(max) && toNumber(max) <= toNumber(min)) {
      call.reject('max must be greater than min')
    }
    return (min: number | Float, max: number | Float) => {
      const from = toNumber(min)
      const to = toNumber(max)
      if (to <= from) return failure('max must be greater than min')
      return float(Math.min(from + Math.random() * (to - from), to - Number.EPSILON))
    }
  },
})
