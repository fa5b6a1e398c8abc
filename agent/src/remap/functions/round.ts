// Function `round`.

import { rounding } from '../elements.ts'
import { defineFunction } from '../function.ts'

export const round = defineFunction({
  name: 'round',
  summary: 'Rounds a number, with halves away from zero. Integers stay unchanged.',
  ...rounding((value) => {
    const whole = Math.trunc(value)
    return Math.abs(value - whole) >= 0.5 ? whole + Math.sign(value) : whole
  }),
  examples: [
    { source: 'round(2.675, precision: 2)', result: '2.68' },
    { source: 'round(2.5)', result: '3' },
    { source: 'round(-2.5)', result: '-3' },
  ],
})
