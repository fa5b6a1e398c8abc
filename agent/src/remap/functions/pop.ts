// Function `pop`.

import type { Value } from '../../event/value.ts'
import { loosened } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const pop = defineFunction({
  name: 'pop',
  category: 'Array',
  summary: 'Returns an array without its last item.',
  parameters: [{ name: 'value', kind: kinds.array, description: 'The array.' }],
  returns: (call) => {
    const kind = call.kind('value').and(kinds.array)
    return kind.isNever ? kinds.array : loosened(kind)
  },
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'pop([1, 2, 3])', result: '[1, 2]' },
    { source: 'pop([])', result: '[]' },
    { source: 'pop(["a"])', result: '[]' },
  ],
  compile: () => (items: Value[]) => items.slice(0, -1),
})
