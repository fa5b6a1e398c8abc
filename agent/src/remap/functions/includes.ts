// Function `includes`.

import type { Value } from '../../event/value.ts'
import { sameValue } from '../equality.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const includes = defineFunction({
  name: 'includes',
  category: 'Enumerate',
  summary: 'Returns whether an array contains an item of the same type and content.',
  parameters: [
    { name: 'value', kind: kinds.array, description: 'The array.' },
    { name: 'item', kind: kinds.any, bytes: true, description: 'The item.' },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'includes(["a", "b"], "b")', result: 'true' },
    { source: 'includes([1, 2], 1.0)', result: 'false' },
    { source: 'includes([{"a": 1}], {"a": 1})', result: 'true' },
  ],
  compile: () => (items: Value[], item: Value) => {
    for (let index = 0; index < items.length; index++) if (sameValue(items[index] as Value, item)) return true
    return false
  },
})
