// Function `format_int`.

import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const formatInt = defineFunction({
  name: 'format_int',
  category: 'Number',
  summary: 'Formats an integer in a base.',
  parameters: [
    { name: 'value', kind: kinds.integer, description: 'The integer.' },
    { name: 'base', kind: kinds.integer, required: false, default: 10, description: 'The base, 2 to 36.' },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The base is not between 2 and 36.'],
  pure: true,
  examples: [
    { source: 'format_int!(42, 16)', result: '"2a"' },
    { source: 'format_int!(42)', result: '"42"' },
    { source: 'format_int!(-42, 2)', result: '"-101010"' },
  ],
  compile: () => (value: number | bigint, base: number | bigint) =>
    base < 2 || base > 36
      ? failure(`invalid base ${base}: must be be between 2 and 36 (inclusive)`)
      : value.toString(Number(base)),
})
