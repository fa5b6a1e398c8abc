// Function `mod`.

import { float, integer, isFloat, isInteger, type Value } from '../../event/value.ts'
import { defineFunction, failure, type Result, toBigint, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

export const mod = defineFunction({
  name: 'mod',
  category: 'Number',
  summary: 'Returns the remainder of a division, with the sign of the dividend.',
  parameters: [
    { name: 'value', kind: kinds.number, ownCheck: true, description: 'The dividend.' },
    { name: 'modulus', kind: kinds.number, ownCheck: true, description: 'The divisor.' },
  ],
  returns: (call) => {
    // By the language's definition only the divisor decides: it may be an integer although the dividend turns out to be a
    // float.
    const modulus = call.constant('modulus')
    if (isFloat(modulus)) return kinds.float
    if (!isInteger(modulus)) return kinds.number
    return call.kind('value').is(kinds.float) && toNumber(modulus) !== 0 ? kinds.number : kinds.integer
  },
  nominal: (call) => !call.kind('value').within(kinds.integer),
  fallible: (call) => {
    const modulus = call.constant('modulus')
    if (!call.kind('value').within(kinds.number)) return true
    if (!(isInteger(modulus) || isFloat(modulus)) || toNumber(modulus) === 0) return true
    const value = call.constant('value')
    return isFloat(value) && !Number.isFinite(toNumber(value))
  },
  errors: ['The divisor is zero.', 'The result would not be a number.'],
  pure: true,
  examples: [
    { source: 'mod(-7, 3)', result: '-1' },
    { source: 'mod(7.5, 2)', result: '1.5' },
    { source: 'mod(5, 0) ?? "no result"', result: '"no result"' },
  ],
  compile:
    () =>
    (value: Value, modulus: Value): Result => {
      if (!(isInteger(value) || isFloat(value)) || !(isInteger(modulus) || isFloat(modulus))) {
        return failure(`can't calculate remainder of type ${textOfKind(value)} and ${textOfKind(modulus)}`)
      }
      if (toNumber(modulus) === 0) return failure("can't divide by zero")
      if (isInteger(value) && isInteger(modulus)) {
        // Adding zero turns -0 into 0.
        if (typeof value === 'number' && typeof modulus === 'number') return (value % modulus) + 0
        return integer(toBigint(value) % toBigint(modulus))
      }
      const rest = toNumber(value) % toNumber(modulus)
      return Number.isNaN(rest) ? failure('operation would produce NaN') : float(rest)
    },
})
