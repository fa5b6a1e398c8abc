// Function `assert_eq`.

import type { Value } from '../../event/value.ts'
import { sameValue } from '../equality.ts'
import { defineFunction, RemapError } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

export const assertEq = defineFunction({
  name: 'assert_eq',
  category: 'Debug',
  summary: 'Ends the program with an error unless two values have equal type and content.',
  parameters: [
    { name: 'left', kind: kinds.any, bytes: true, description: 'One value.' },
    { name: 'right', kind: kinds.any, bytes: true, description: 'The other value.' },
    { name: 'message', kind: kinds.string, required: false, description: 'The message of the error.' },
  ],
  returns: kinds.boolean,
  fallible: 'always',
  errors: ['The values differ.'],
  pure: false,
  examples: [
    { source: 'assert_eq!(1 + 1, 2)', result: 'true' },
    { source: 'assert_eq("a", "b") ?? "different"', result: '"different"' },
    { source: 'assert_eq([1], [1]) ?? false', result: 'true' },
  ],
  compile: () => (left: Value, right: Value, message: string | undefined) =>
    sameValue(left, right) ||
    new RemapError(
      message ?? `assertion failed: ${valueText(left)} == ${valueText(right)}`,
      'error',
      message ?? null,
      null,
      'assertion',
    ),
})
