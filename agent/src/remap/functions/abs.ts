// Function `abs`.

import { Float, integer } from '../../event/value.ts'
import { numberKind } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const abs = defineFunction({
  name: 'abs',
  category: 'Number',
  summary: 'The magnitude of a number.',
  description: 'That of the smallest integer does not fit and stays negative.',
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
