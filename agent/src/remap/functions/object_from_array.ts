// Function `object_from_array`.

import { Bytes, setField, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

export const objectFromArray = defineFunction({
  name: 'object_from_array',
  category: 'Object',
  summary: 'Builds an object from pairs, or from values and an array of their names.',
  parameters: [
    { name: 'values', kind: kinds.array, description: 'Pairs of a name and a value, or the values.' },
    { name: 'keys', kind: kinds.array, required: false, description: 'The names of the values.' },
  ],
  returns: kinds.object,
  fallible: 'never',
  failsUnannounced: true,
  errors: ['A pair is empty.', 'A name is neither a string nor null.', 'A pair is not an array.'],
  pure: true,
  fresh: true,
  examples: [
    { source: 'object_from_array([["a", 1], ["b", 2]])', result: '{ "a": 1, "b": 2 }' },
    { source: 'object_from_array([1, 2], keys: ["a", "b"])', result: '{ "a": 1, "b": 2 }' },
    { source: 'object_from_array([["a", 1], [null, 2], ["b"]])', result: '{ "a": 1, "b": null }' },
  ],
  compile:
    () =>
    (items: Value[], names: Value[] | undefined): Result => {
      const fields: ValueObject = {}
      const count = names === undefined ? items.length : Math.min(items.length, names.length)
      for (let index = 0; index < count; index++) {
        const item = items[index] as Value
        if (names === undefined && !Array.isArray(item)) return failure(`expected array, got ${textOfKind(item)}`)
        const name = names === undefined ? (item as Value[])[0] : (names[index] as Value)
        if (name === undefined) return failure('array value too short')
        if (name === null) continue
        if (typeof name !== 'string' && !(name instanceof Bytes)) return failure('object keys must be strings')
        setField(fields, String(name), names === undefined ? ((item as Value[])[1] ?? null) : item)
      }
      return fields
    },
})
