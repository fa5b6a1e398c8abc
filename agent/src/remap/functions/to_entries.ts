// Function `to_entries`.

import { sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const toEntries = defineFunction({
  name: 'to_entries',
  category: 'Object',
  summary: 'Converts an object or array to an array of objects with `key` and `value`.',
  parameters: [{ name: 'value', kind: kinds.object.or(kinds.array), description: 'The object or array.' }],
  returns: kinds.array,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'to_entries({"a": 1})', result: '[{ "key": "a", "value": 1 }]' },
    { source: 'to_entries(["x"])', result: '[{ "key": 0, "value": "x" }]' },
    { source: 'to_entries({})', result: '[]' },
  ],
  compile: () => (value: Value[] | ValueObject) =>
    Array.isArray(value)
      ? value.map((item, index) => ({ key: index, value: item }))
      : sortedFieldNames(value).map((name) => ({ key: name, value: value[name] as Value })),
})
