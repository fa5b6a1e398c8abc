// Function `to_regex`.

import { Regex } from '../../event/value.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { compileRegex } from '../regex.ts'

export const toRegex = defineFunction({
  name: 'to_regex',
  category: 'Coerce',
  summary: 'Compiles a regular expression at run time. If the pattern is constant, a literal is much faster.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The pattern.' }],
  returns: kinds.regex,
  fallible: 'always',
  errors: ['The pattern is invalid.'],
  pure: true,
  examples: [
    { source: 'match("abc", to_regex!("^a"))', result: 'true' },
    { source: 'match("ABC", to_regex!("(?i)abc"))', result: 'true' },
    { source: 'is_regex(to_regex("(") ?? null)', result: 'false' },
  ],
  compile: () => (value: string) => {
    const compiled = compileRegex(value)
    return compiled instanceof Regex ? compiled : failure(`failed to parse regex: ${compiled.reason}`)
  },
})
