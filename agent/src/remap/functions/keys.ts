// Function `keys`.

import { sortedFieldNames, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const keys = defineFunction({
  name: 'keys',
  category: 'Enumerate',
  summary: 'Returns the sorted field names of an object.',
  parameters: [{ name: 'value', kind: kinds.object, description: 'The object.' }],
  returns: kinds.arrayEach(kinds.string),
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'keys({"b": 1, "a": 2})', result: '["a", "b"]' },
    { source: 'keys({})', result: '[]' },
    { source: 'keys({"a": {"b": 1}})', result: '["a"]' },
  ],
  compile: () => (value: ValueObject) => sortedFieldNames(value),
})
