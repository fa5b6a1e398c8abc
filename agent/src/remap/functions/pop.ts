// Function `pop`.

import type { Value } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const pop = defineFunction({
  name: 'pop',
  category: 'Array',
  summary: 'Returns an array without its last item.',
  parameters: [{ name: 'value', kind: kinds.array, description: 'The array.' }],
  // The language takes the result for an array that still has its last item.
  returns: (call) => {
    const kind = call.kind('value').and(kinds.array)
    return kind.isNever ? kinds.array : kind
  },
  nominal: (call) => (call.kind('value').array?.known.size ?? 0) > 0,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'pop([1, 2, 3])', result: '[1, 2]' },
    { source: 'pop([])', result: '[]' },
    { source: 'pop(["a"])', result: '[]' },
  ],
  compile: () => (items: Value[]) => items.slice(0, -1),
})
