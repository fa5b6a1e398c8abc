// Function `round`.

import { type Float, isInteger } from '../../event/value.ts'
import { numberKind, rounded } from '../elements.ts'
import { defineFunction, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'

export const round = defineFunction({
  name: 'round',
  category: 'Number',
  summary: 'Rounds a number, halves away from zero. Integers stay as they are.',
  parameters: [
    { name: 'value', kind: kinds.number, description: 'The number.' },
    {
      name: 'precision',
      kind: kinds.integer,
      required: false,
      default: 0,
      description: 'Decimals to keep; may be negative.',
    },
  ],
  returns: numberKind,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'round(2.675, precision: 2)', result: '2.68' },
    { source: 'round(2.5)', result: '3' },
    { source: 'round(-2.5)', result: '-3' },
  ],
  compile: () => (value: number | bigint | Float, precision: number | bigint) => {
    if (isInteger(value)) return value
    return rounded(toNumber(value), precision, (scaled) => {
      const whole = Math.trunc(scaled)
      return Math.abs(scaled - whole) >= 0.5 ? whole + Math.sign(scaled) : whole
    })
  },
})
