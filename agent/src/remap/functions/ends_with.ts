// Function `ends_with`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const endsWith = defineFunction({
  name: 'ends_with',
  category: 'String',
  summary: 'Tells whether a text ends with another.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'substring', kind: kinds.string, description: 'The end.' },
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
    { source: 'ends_with("The Valve", "valve", case_sensitive: false)', result: 'true' },
    { source: 'ends_with("The Valve", "Valve")', result: 'true' },
    { source: 'ends_with("The Valve", "The")', result: 'false' },
  ],
  compile: () => (value: string, part: string, caseSensitive: boolean) =>
    caseSensitive ? value.endsWith(part) : value.toLowerCase().endsWith(part.toLowerCase()),
})
