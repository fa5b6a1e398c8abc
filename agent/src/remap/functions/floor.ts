// Function `floor`.

import { rounding } from '../elements.ts'
import { defineFunction } from '../function.ts'

export const floor = defineFunction({
  name: 'floor',
  summary: 'Rounds a number down. Integers stay unchanged.',
  ...rounding(Math.floor),
  examples: [
    { source: 'floor(4.349, precision: 2)', result: '4.34' },
    { source: 'floor(4.9)', result: '4' },
    { source: 'floor(-4.1)', result: '-5' },
  ],
})
