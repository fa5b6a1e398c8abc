// Function `values`.

import { sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const values = defineFunction({
  name: 'values',
  category: 'Enumerate',
  summary: 'Returns the field values of an object, sorted by field name.',
  parameters: [{ name: 'value', kind: kinds.object, description: 'The object.' }],
  returns: (call) => {
    const elements = call.kind('value').and(kinds.object).elements
    return elements.isAny ? kinds.array : kinds.arrayEach(elements)
  },
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'values({"b": 1, "a": 2})', result: '[2, 1]' },
    { source: 'values({})', result: '[]' },
    { source: 'values({"a": [1]})', result: '[[1]]' },
  ],
  compile: () => (value: ValueObject) => sortedFieldNames(value).map((name) => value[name] as Value),
})
