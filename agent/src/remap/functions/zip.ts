// Function `zip`.

import type { Value } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

export const zip = defineFunction({
  name: 'zip',
  category: 'Array',
  summary: 'Pairs the items of arrays by index, up to the length of the shortest.',
  parameters: [
    { name: 'array_0', kind: kinds.array, description: 'The first array, or an array of all arrays.' },
    { name: 'array_1', kind: kinds.array, required: false, description: 'The second array.' },
  ],
  returns: kinds.array,
  fallible: 'never',
  failsUnannounced: true,
  errors: ['The only argument is not an array of arrays.'],
  pure: true,
  examples: [
    { source: 'zip([1, 2], ["a", "b"])', result: '[[1, "a"], [2, "b"]]' },
    { source: 'zip([[1, 2], ["a"]])', result: '[[1, "a"]]' },
    { source: 'zip([], [1])', result: '[]' },
  ],
  compile:
    () =>
    (first: Value[], second: Value[] | undefined): Result => {
      const arrays = second === undefined ? first : [first, second]
      let length = arrays.length === 0 ? 0 : Number.POSITIVE_INFINITY
      for (const array of arrays) {
        if (!Array.isArray(array)) return failure(`expected array, got ${textOfKind(array)}`)
        length = Math.min(length, array.length)
      }
      const tuples: Value[][] = []
      for (let index = 0; index < length; index++)
        tuples.push(arrays.map((array) => (array as Value[])[index] as Value))
      return tuples
    },
})
