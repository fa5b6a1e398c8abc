// Function `push`.

import type { Value } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const push = defineFunction({
  name: 'push',
  category: 'Array',
  summary: 'Returns an array with an additional item at its end.',
  parameters: [
    { name: 'value', kind: kinds.array, description: 'The array.' },
    { name: 'item', kind: kinds.any, bytes: true, description: 'The item.' },
  ],
  returns: (call) => {
    const array = call.kind('value').and(kinds.array)
    const item = call.kind('item').undefinedAsNull
    const known = array.array?.known
    if (array.isNever || known === undefined || array.array?.unknown !== undefined) {
      const elements = array.elements
      return elements.isAny ? kinds.array : kinds.arrayEach(elements.or(item))
    }
    return kinds.arrayOf([...[...known].sort(([left], [right]) => left - right).map(([, kind]) => kind), item])
  },
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'push([1, 2], 3)', result: '[1, 2, 3]' },
    { source: 'push([], "a")', result: '["a"]' },
    { source: 'push([1], [2])', result: '[1, [2]]' },
  ],
  compile: () => (items: Value[], item: Value) => {
    const copy = items.slice()
    copy.push(item)
    return copy
  },
})
