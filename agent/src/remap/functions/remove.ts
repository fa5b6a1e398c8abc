// Function `remove`.

import { getValue, without } from '../../event/path.ts'
import { isObject, type Value } from '../../event/value.ts'
import { pathSegments } from '../elements.ts'
import { type CallKinds, defineFunction, isFailure, type Result } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'
import { containerAndPath, containerKind, containerOfFailure } from '../parameters.ts'

/** Other values stay as they are, or become null with an empty path. */
function resultKind(call: CallKinds): Kind {
  const other = call.kind('value').undefinedAsNull.without(kinds.object.or(kinds.array))
  return other.isNever ? containerKind(call) : containerKind(call).or(other).or(kinds.null)
}

export const remove = defineFunction({
  name: 'remove',
  category: 'Path',
  summary: 'Returns a copy of an object or array without the value at a path computed at run time.',
  parameters: [
    ...containerAndPath,
    {
      name: 'compact',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to remove parents that become empty.',
    },
  ],
  returns: resultKind,
  fallible: 'always',
  valueOfFailure: containerOfFailure,
  errors: ['A part of the path is neither a string nor an integer.'],
  pure: true,
  examples: [
    { source: 'remove!({"a": 1, "b": 2}, ["a"])', result: '{ "b": 2 }' },
    { source: 'remove!({"a": {"b": 1}}, ["a", "b"], compact: true)', result: '{  }' },
    { source: 'remove!([1, 2, 3], [0])', result: '[2, 3]' },
  ],
  compile:
    () =>
    (value: Value, path: Value[], compact: boolean): Result => {
      const segments = pathSegments(path)
      if (isFailure(segments)) return segments
      // Other values have no members and stay unchanged.
      if (!Array.isArray(value) && !isObject(value)) return segments.length === 0 ? null : value
      const empty: Value = Array.isArray(value) ? [] : {}
      if (segments.length === 0) return empty
      return getValue(value, segments) === undefined ? value : (without(value, segments, 0, compact) ?? empty)
    },
})
