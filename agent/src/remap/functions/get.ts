// Function `get`.

import { getValue } from '../../event/path.ts'
import type { Value } from '../../event/value.ts'
import { pathSegments } from '../elements.ts'
import { defineFunction, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { containerAndPath } from '../parameters.ts'

export const get = defineFunction({
  name: 'get',
  category: 'Path',
  summary: 'The value at a path that is only known at run time; null if there is none.',
  parameters: [...containerAndPath],
  returns: kinds.any,
  fallible: 'always',
  errors: ['A part of the path is neither a string nor an integer.'],
  pure: true,
  examples: [
    { source: 'get!({"a": {"b": [1, 2]}}, ["a", "b", 1])', result: '2' },
    { source: 'get!([1, 2, 3], [-1])', result: '3' },
    { source: 'get!({"a": 1}, ["b"])', result: 'null' },
  ],
  compile:
    () =>
    (value: Value, path: Value[]): Result => {
      const segments = pathSegments(path)
      return isFailure(segments) ? segments : (getValue(value, segments) ?? null)
    },
})
