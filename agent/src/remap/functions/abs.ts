// Function `abs`.

import { Float, integer } from '../../event/value.ts'
import { numberKind } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const abs = defineFunction({
  name: 'abs',
  category: 'Number',
  summary: 'Returns the absolute value of a number.',
  description:
    'The absolute value of the smallest integer does not fit in 64 bits, so that integer is returned unchanged.',
  parameters: [{ name: 'value', kind: kinds.number, description: 'The number.' }],
  returns: numberKind,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'abs(-42)', result: '42' },
    { source: 'abs(3.5)', result: '3.5' },
    { source: 'abs(0)', result: '0' },
  ],
  compile: () => (value: number | bigint | Float) => {
    if (typeof value === 'number') return Math.abs(value)
    if (typeof value === 'bigint') return value < 0n ? integer(BigInt.asIntN(64, -value)) : value
    return new Float(Math.abs(value.value))
  },
})
