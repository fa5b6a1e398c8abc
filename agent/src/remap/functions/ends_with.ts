// Function `ends_with`.

import { caseSensitive } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const endsWith = defineFunction({
  name: 'ends_with',
  category: 'String',
  summary: 'Returns whether a text ends with another.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'substring', kind: kinds.string, description: 'The end.' },
    caseSensitive,
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'ends_with("The Valve", "valve", case_sensitive: false)', result: 'true' },
    { source: 'ends_with("The Valve", "Valve")', result: 'true' },
    { source: 'ends_with("The Valve", "The")', result: 'false' },
  ],
  compile: () => (value: string, part: string, exactly: boolean) =>
    exactly ? value.endsWith(part) : value.toLowerCase().endsWith(part.toLowerCase()),
})
