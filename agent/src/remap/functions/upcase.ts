// Function `upcase`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const upcase = defineFunction({
  name: 'upcase',
  category: 'String',
  summary: 'Converts text to upper case.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'upcase("Grüße")', result: '"GRÜSSE"' },
    { source: 'upcase("gate 7")', result: '"GATE 7"' },
    { source: 'upcase("")', result: '""' },
  ],
  compile: () => (value: string) => value.toUpperCase(),
})
