// Function `strip_whitespace`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const stripWhitespace = defineFunction({
  name: 'strip_whitespace',
  category: 'String',
  summary: 'Removes white space from both ends of a text.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'strip_whitespace("  a b \\n")', result: '"a b"' },
    { source: 'strip_whitespace("a")', result: '"a"' },
    { source: 'strip_whitespace("\\t\\n")', result: '""' },
  ],
  compile: () => (value: string) =>
    value.replace(/^\p{White_Space}+/u, '').replace(/(?<!\p{White_Space})\p{White_Space}+$/u, ''),
})
