// Function `is_empty`.

import { Bytes, fieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const isEmpty = defineFunction({
  name: 'is_empty',
  category: 'Type',
  summary: 'Returns whether a string, array or object is empty.',
  parameters: [
    {
      name: 'value',
      kind: kinds.string.or(kinds.array).or(kinds.object),
      bytes: true,
      description: 'The value.',
    },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'is_empty("")', result: 'true' },
    { source: 'is_empty({"a": 1})', result: 'false' },
    { source: 'is_empty([])', result: 'true' },
  ],
  compile: () => (value: string | Bytes | Value[] | ValueObject) => {
    if (typeof value === 'string') return value === ''
    if (Array.isArray(value)) return value.length === 0
    return value instanceof Bytes ? value.bytes.length === 0 : fieldNames(value).length === 0
  },
})
