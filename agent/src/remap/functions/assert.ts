// Function `assert`.

import { defineFunction, RemapError } from '../function.ts'
import { kinds } from '../kind.ts'

export const assertFunction = defineFunction({
  name: 'assert',
  category: 'Debug',
  summary: 'Ends the program with an error unless a condition is true.',
  parameters: [
    { name: 'condition', kind: kinds.boolean, description: 'The condition.' },
    { name: 'message', kind: kinds.string, required: false, description: 'Message of the error.' },
  ],
  returns: kinds.boolean,
  fallible: 'always',
  errors: ['The condition is false.'],
  pure: false,
  examples: [
    { source: 'assert!(1 < 2, message: "one is less")', result: 'true' },
    { source: 'assert(false, message: "never") ?? "failed"', result: '"failed"' },
    { source: 'assert(1 == 1.0) ?? false', result: 'true' },
  ],
  compile: () => (condition: boolean, message: string | undefined) =>
    condition || new RemapError(message ?? 'assertion failed', 'error', message ?? null, null, 'assertion'),
})
