// Function `match`.

import type { Regex } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const matchFunction = defineFunction({
  name: 'match',
  category: 'String',
  summary: 'Returns whether a regular expression matches anywhere in a text.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'pattern', kind: kinds.regex, description: 'The pattern.' },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'match("oxbow lock", r\'^oxbow\')', result: 'true' },
    { source: 'match("oxbow lock", r\'gate\')', result: 'false' },
    { source: 'match("Oxbow lock", r\'(?i)oxbow\')', result: 'true' },
  ],
  compile: () => (value: string, pattern: Regex) => pattern.compiled.test(value),
})
