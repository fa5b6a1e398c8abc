// Function `remove`.

import { getValue, without } from '../../event/path.ts'
import { isObject, type Value } from '../../event/value.ts'
import { pathSegments } from '../elements.ts'
import { defineFunction, failure, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { containerAndPath, containerKind } from '../parameters.ts'
import { textOfKind } from '../text.ts'

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
  returns: containerKind,
  fallible: 'always',
  valueOfFailure: '',
  errors: ['A part of the path is neither a string nor an integer.', 'The value is neither an object nor an array.'],
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
      // The rest of the program was compiled for an object or an array.
      if (!Array.isArray(value) && !isObject(value))
        return failure(`expected object or array, got ${textOfKind(value)}`)
      const empty: Value = Array.isArray(value) ? [] : {}
      if (segments.length === 0) return empty
      return getValue(value, segments) === undefined ? value : (without(value, segments, 0, compact) ?? empty)
    },
})
