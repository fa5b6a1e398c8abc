// Function `append`.

import type { Value } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const append = defineFunction({
  name: 'append',
  category: 'Array',
  summary: 'An array with the items of another one at its end.',
  parameters: [
    { name: 'value', kind: kinds.array, description: 'The array.' },
    { name: 'items', kind: kinds.array, description: 'The items to add.' },
  ],
  returns: (call) => {
    const left = call.kind('value').and(kinds.array).elements
    const right = call.kind('items').and(kinds.array).elements
    return kinds.arrayEach(left.or(right))
  },
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'append([1, 2], [3, 4])', result: '[1, 2, 3, 4]' },
    { source: 'append([], [null])', result: '[null]' },
    { source: 'append(["a"], [["b"]])', result: '["a", ["b"]]' },
  ],
  compile: () => (left: Value[], right: Value[]) => left.concat(right),
})
