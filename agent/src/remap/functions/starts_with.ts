// Function `starts_with`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const startsWith = defineFunction({
  name: 'starts_with',
  category: 'String',
  summary: 'Tells whether a text begins with another.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'substring', kind: kinds.string, description: 'The beginning.' },
    {
      name: 'case_sensitive',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether letter case counts.',
    },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'starts_with("The Valve", "The")', result: 'true' },
    { source: 'starts_with("The Valve", "the")', result: 'false' },
    { source: 'starts_with("The Valve", "the", case_sensitive: false)', result: 'true' },
  ],
  compile: () => (value: string, part: string, caseSensitive: boolean) =>
    caseSensitive ? value.startsWith(part) : value.toLowerCase().startsWith(part.toLowerCase()),
})
