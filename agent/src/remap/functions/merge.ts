// Function `merge`.

import { getField, isObject, setField, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds, mergedObjects } from '../kind.ts'

export const merge = defineFunction({
  name: 'merge',
  category: 'Object',
  summary: 'The fields of two objects; where both have one, that of the second.',
  parameters: [
    { name: 'to', kind: kinds.object, description: 'The first object.' },
    { name: 'from', kind: kinds.object, description: 'The second object.' },
    {
      name: 'deep',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Also merge objects that both have under one name.',
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
  // The platform copies all members at once; a member that is undefined must not displace one.
  if (!deep && isComplete(from)) return Object.assign({ ...to }, from)
  const result = { ...to }
  for (const name in from) {
    const value = from[name]
    if (value === undefined) continue
    const old = deep && isObject(value) ? getField(to, name) : undefined
    setField(result, name, isObject(old) ? merged(old, value as ValueObject, true) : value)
  }
  return result
}

/** True if `Object.assign` would copy all members as they are. */
function isComplete(object: ValueObject): boolean {
  for (const name in object) if (object[name] === undefined || name === '__proto__') return false
  return true
}
