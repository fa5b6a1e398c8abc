// Function `pop`.

import type { Value } from '../../event/value.ts'
import { loosened } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'

export const pop = defineFunction({
  name: 'pop',
  category: 'Array',
  summary: 'Returns an array without its last item.',
  parameters: [{ name: 'value', kind: kinds.array, description: 'The array.' }],
  returns: (call) => {
    const kind = call.kind('value').and(kinds.array)
    if (kind.isNever) return kinds.array
    const { known, unknown } = kind.array ?? { known: new Map<number, Kind>(), unknown: kinds.any }
    const items = [...known].sort(([left], [right]) => left - right).map(([, item]) => item)
    // The last item is only known where the length is.
    return unknown === undefined && !items.some((item) => item.overlaps(kinds.undefined))
      ? kinds.arrayOf(items.slice(0, -1))
      : loosened(kind)
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
