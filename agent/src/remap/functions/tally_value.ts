// Function `tally_value`.

import type { Value } from '../../event/value.ts'
import { sameValue } from '../equality.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const tallyValue = defineFunction({
  name: 'tally_value',
  category: 'Enumerate',
  summary: 'Counts the items of an array that equal a value.',
  parameters: [
    { name: 'array', kind: kinds.array, description: 'The array.' },
    { name: 'value', kind: kinds.any, bytes: true, description: 'The value.' },
  ],
  returns: kinds.integer,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'tally_value([1, 1, 2], 1)', result: '2' },
    { source: 'tally_value(["a"], "b")', result: '0' },
    { source: 'tally_value([1, 1.0], 1)', result: '1' },
  ],
  compile: () => (items: Value[], value: Value) => {
    let count = 0
    for (const item of items) if (sameValue(item, value)) count++
    return count
  },
})
