// Function `unique`.

import type { Value } from '../../event/value.ts'
import { sameValue } from '../equality.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const unique = defineFunction({
  name: 'unique',
  category: 'Enumerate',
  summary: 'Removes repeated items from an array.',
  parameters: [{ name: 'value', kind: kinds.array, description: 'The array.' }],
  returns: kinds.array,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'unique([1, 2, 1, "a", "a"])', result: '[1, 2, "a"]' },
    { source: 'unique([])', result: '[]' },
    { source: 'unique([1, 1.0, "1"])', result: '[1, 1, "1"]' },
  ],
  compile: () => (items: Value[]) => {
    const scalars = new Set<Value>()
    const others: Value[] = []
    const result: Value[] = []
    for (const item of items) {
      if (typeof item !== 'object' || item === null) {
        if (scalars.has(item)) continue
        scalars.add(item)
      } else {
        if (others.some((other) => sameValue(other, item))) continue
        others.push(item)
      }
      result.push(item)
    }
    return result
  },
})
