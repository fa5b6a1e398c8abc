// Function `starts_with`.

import { caseSensitive } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const startsWith = defineFunction({
  name: 'starts_with',
  category: 'String',
  summary: 'Returns whether a text begins with another.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'substring', kind: kinds.string, description: 'The beginning.' },
    caseSensitive,
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'starts_with("The Valve", "The")', result: 'true' },
    { source: 'starts_with("The Valve", "the")', result: 'false' },
    { source: 'starts_with("The Valve", "the", case_sensitive: false)', result: 'true' },
  ],
  compile: () => (value: string, part: string, exactly: boolean) =>
    exactly ? value.startsWith(part) : value.toLowerCase().startsWith(part.toLowerCase()),
})
