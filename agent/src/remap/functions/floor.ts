// Function `floor`.

import { type Float, isInteger } from '../../event/value.ts'
import { numberKind, rounded } from '../elements.ts'
import { defineFunction, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'

export const floor = defineFunction({
  name: 'floor',
  category: 'Number',
  summary: 'Rounds a number down. Integers stay as they are.',
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
    { source: 'floor(4.349, precision: 2)', result: '4.34' },
    { source: 'floor(4.9)', result: '4' },
    { source: 'floor(-4.1)', result: '-5' },
  ],
  compile: () => (value: number | bigint | Float, precision: number | bigint) => {
    if (isInteger(value)) return value
    return rounded(toNumber(value), precision, Math.floor)
  },
})
