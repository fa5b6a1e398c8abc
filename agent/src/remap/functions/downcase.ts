// Function `downcase`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const downcase = defineFunction({
  name: 'downcase',
  category: 'String',
  summary: 'Converts text to lower case.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'downcase("GRÜSSE")', result: '"grüsse"' },
    { source: 'downcase("Gate 7")', result: '"gate 7"' },
    { source: 'downcase("")', result: '""' },
  ],
  compile: () => (value: string) => value.toLowerCase(),
})
