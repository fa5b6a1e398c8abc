// Function `set`.

import { maxIndex, written } from '../../event/path.ts'
import { Bytes, isObject, type Value } from '../../event/value.ts'
import { pathSegments } from '../elements.ts'
import { type CallKinds, defineFunction, failure, isFailure, type Result } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'
import { containerAndPath, containerKind } from '../parameters.ts'
import { textOfKind } from '../text.ts'

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
  valueOfFailure: '',
  errors: [
    'A part of the path is neither a string nor an integer, or an index exceeds 65535.',
    'A computed path would turn an object into an array or the reverse, or replace either with another value.',
  ],
  pure: true,
  examples: [
    { source: 'set!({"a": 1}, ["b", "c"], 2)', result: '{ "a": 1, "b": { "c": 2 } }' },
    { source: 'set!([1, 2], [0], "a")', result: '["a", 2]' },
    { source: 'set!({"a": {"b": 1}}, ["a", "b"], null)', result: '{ "a": { "b": null } }' },
  ],
  compile: (call) => {
    const isKnown = call.constant('path') !== undefined
    const kind = containerKind(call)
    return (value: Value, path: Value[], data: Value): Result => {
      const segments = pathSegments(path)
      if (isFailure(segments)) return segments
      const far = segments.find((segment) => typeof segment === 'number' && Math.abs(segment) > maxIndex)
      if (far !== undefined) return failure(`index ${far} is out of range: from -${maxIndex} to ${maxIndex}`)
      const result = written(value, segments, 0, data)
      // The rest of the program was compiled for a value of this kind.
      const isSame = Array.isArray(result)
        ? kind.overlaps(kinds.array)
        : isObject(result) && kind.overlaps(kinds.object)
      if (isSame || isKnown) return result
      // The kind of the result would be as deep as the path, which comes from data.
      const made = Array.isArray(result) ? 'an array' : isObject(result) ? 'an object' : 'another value'
      return failure(`path would replace ${textOfKind(value)} with ${made}`)
    }
  },
})
