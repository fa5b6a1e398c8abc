// Function `set`.

import { maxIndex, written } from '../../event/path.ts'
import { Bytes, type Value } from '../../event/value.ts'
import { pathSegments } from '../elements.ts'
import { type CallKinds, defineFunction, failure, isFailure, type Result } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'
import { containerAndPath, containerKind, containerOfFailure } from '../parameters.ts'

/** The first part of a path decides what the result is, whatever the value was: the data itself if there is none. */
function resultKind(call: CallKinds): Kind {
  const path = call.constant('path')
  if (!Array.isArray(path)) return containerKind(call)
  const [first] = path
  if (first === undefined) return call.kind('data')
  if (typeof first === 'string' || first instanceof Bytes) return kinds.object
  return typeof first === 'number' || typeof first === 'bigint' ? kinds.array : containerKind(call)
}

export const set = defineFunction({
  name: 'set',
  category: 'Path',
  summary: 'A copy of an object or array with a value at a path that is only known at run time.',
  parameters: [...containerAndPath, { name: 'data', kind: kinds.any, bytes: true, description: 'The value to write.' }],
  returns: resultKind,
  fallible: 'always',
  // A computed path may turn an object into an array or the reverse.
  nominal: (call) => call.constant('path') === undefined,
  valueOfFailure: containerOfFailure,
  errors: ['A part of the path is neither a string nor an integer, or an index exceeds 65535.'],
  pure: true,
  examples: [
    { source: 'set!({"a": 1}, ["b", "c"], 2)', result: '{ "a": 1, "b": { "c": 2 } }' },
    { source: 'set!([1, 2], [0], "a")', result: '["a", 2]' },
    { source: 'set!({"a": {"b": 1}}, ["a", "b"], null)', result: '{ "a": { "b": null } }' },
  ],
  compile:
    () =>
    (value: Value, path: Value[], data: Value): Result => {
      const segments = pathSegments(path)
      if (isFailure(segments)) return segments
      const far = segments.find((segment) => typeof segment === 'number' && Math.abs(segment) > maxIndex)
      if (far !== undefined) return failure(`index ${far} is out of range: from -${maxIndex} to ${maxIndex}`)
      return written(value, segments, 0, data)
    },
})
