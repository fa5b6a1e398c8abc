// Function `merge`.

import { getField, isObject, mergeObjects, setField, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds, mergedObjects } from '../kind.ts'

export const merge = defineFunction({
  name: 'merge',
  category: 'Object',
  summary: 'Merges the fields of two objects; fields of the second take precedence.',
  parameters: [
    { name: 'to', kind: kinds.object, description: 'The first object.' },
    { name: 'from', kind: kinds.object, description: 'The second object.' },
    {
      name: 'deep',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to merge objects with the same name too.',
    },
  ],
  returns: (call) => mergedObjects(call.kind('to'), call.kind('from')),
  fallible: 'never',
  pure: true,
  fresh: true,
  examples: [
    { source: 'merge({"a": 1, "b": 1}, {"b": 2})', result: '{ "a": 1, "b": 2 }' },
    { source: 'merge({"a": {"x": 1}}, {"a": {"y": 2}}, deep: true)', result: '{ "a": { "x": 1, "y": 2 } }' },
    { source: 'merge({"a": {"x": 1}}, {"a": {"y": 2}})', result: '{ "a": { "y": 2 } }' },
  ],
  compile: () => merged,
})

function merged(to: ValueObject, from: ValueObject, deep: boolean): ValueObject {
  const result = mergeObjects(to, from)
  if (!deep) return result
  for (const name in from) {
    const value = from[name]
    const old = isObject(value) ? getField(to, name) : undefined
    if (isObject(old)) setField(result, name, merged(old, value as ValueObject, true))
  }
  return result
}
