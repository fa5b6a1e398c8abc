// Function `match_array`.

import { Bytes, type Regex, type Value } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const matchArray = defineFunction({
  name: 'match_array',
  category: 'Enumerate',
  summary: 'Returns whether a regular expression matches any string of an array, or every string.',
  parameters: [
    { name: 'value', kind: kinds.array, description: 'The array.' },
    { name: 'pattern', kind: kinds.regex, description: 'The pattern.' },
    { name: 'all', kind: kinds.boolean, required: false, default: false, description: 'Whether all items must match.' },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'match_array(["abc", "xyz"], r\'^a\')', result: 'true' },
    { source: 'match_array(["abc", "xyz"], r\'^a\', all: true)', result: 'false' },
    { source: 'match_array([1, "abc"], r\'^a\')', result: 'true' },
  ],
  compile: () => (items: Value[], pattern: Regex, all: boolean) => {
    const matches = (item: Value): boolean =>
      (typeof item === 'string' || item instanceof Bytes) && pattern.compiled.test(String(item))
    return all ? items.every(matches) : items.some(matches)
  },
})
