// Function `ceil`.

import { rounding } from '../elements.ts'
import { defineFunction } from '../function.ts'

export const ceil = defineFunction({
  name: 'ceil',
  summary: 'Rounds a number up. Integers stay unchanged.',
  ...rounding(Math.ceil),
  examples: [
    { source: 'ceil(4.345, precision: 2)', result: '4.35' },
    { source: 'ceil(4.1)', result: '5' },
    { source: 'ceil(-4.9)', result: '-4' },
  ],
})
