// Function `length`.

import { Bytes, type Value, type ValueObject } from '../../event/value.ts'
import { fieldCount } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const length = defineFunction({
  name: 'length',
  category: 'Enumerate',
  summary: 'Returns the number of items of an array, fields of an object, or bytes of a string.',
  parameters: [
    { name: 'value', kind: kinds.string.or(kinds.array).or(kinds.object), bytes: true, description: 'The value.' },
  ],
  returns: kinds.integer,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'length("é")', result: '2' },
    { source: 'length([1, 2, 3])', result: '3' },
    { source: 'length({"a": 1})', result: '1' },
  ],
  compile: () => (value: string | Bytes | Value[] | ValueObject) => {
    if (typeof value === 'string') return Buffer.byteLength(value)
    if (Array.isArray(value)) return value.length
    return value instanceof Bytes ? value.bytes.length : fieldCount(value)
  },
})
