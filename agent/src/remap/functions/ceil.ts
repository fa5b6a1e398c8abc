// Function `ceil`.

import { type Float, isInteger } from '../../event/value.ts'
import { numberKind, rounded } from '../elements.ts'
import { defineFunction, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'

export const ceil = defineFunction({
  name: 'ceil',
  category: 'Number',
  summary: 'Rounds a number up. Integers stay as they are.',
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
    { source: 'ceil(4.345, precision: 2)', result: '4.35' },
    { source: 'ceil(4.1)', result: '5' },
    { source: 'ceil(-4.9)', result: '-4' },
  ],
  compile: () => (value: number | bigint | Float, precision: number | bigint) => {
    if (isInteger(value)) return value
    return rounded(toNumber(value), precision, Math.ceil)
  },
})
