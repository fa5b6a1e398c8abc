// Function `contains`.

import { caseSensitive } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const contains = defineFunction({
  name: 'contains',
  category: 'String',
  summary: 'Returns whether a text contains another.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'substring', kind: kinds.string, description: 'The text to search for.' },
    caseSensitive,
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'contains("The Valve", "Val")', result: 'true' },
    { source: 'contains("The Valve", "valve", case_sensitive: false)', result: 'true' },
    { source: 'contains("", "a")', result: 'false' },
  ],
  compile: () => (value: string, part: string, exactly: boolean) =>
    exactly ? value.includes(part) : value.toLowerCase().includes(part.toLowerCase()),
})
