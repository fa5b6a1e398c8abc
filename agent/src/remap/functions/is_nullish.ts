// Function `is_nullish`.

import type { Value } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const isNullish = defineFunction({
  name: 'is_nullish',
  category: 'Type',
  summary: 'Returns whether a value is null, an empty text, white space, or `-`.',
  parameters: [{ name: 'value', kind: kinds.any, description: 'The value.' }],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'is_nullish("  ")', result: 'true' },
    { source: 'is_nullish(0)', result: 'false' },
    { source: 'is_nullish("-")', result: 'true' },
  ],
  compile: () => (value: Value) =>
    value === null || (typeof value === 'string' && (value === '-' || /^\p{White_Space}*$/u.test(value))),
})
