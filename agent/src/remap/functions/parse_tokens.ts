// Function `parse_tokens`. A token is quoted, bracketed or plain; if none fits, the rest is one token.

import type { Value } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

const token = /"((?:[^"\\]|\\["\\])*)"|\[((?:[^\]\\]|\\[\]\\])*)\]|([^ \t["]+)/y

export const parseTokens = defineFunction({
  name: 'parse_tokens',
  category: 'Parse',
  summary: 'Splits a line at blanks, except within quotes and brackets. `-` becomes null.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The line.' }],
  returns: kinds.arrayEach(kinds.string),
  // Some of the tokens are null.
  nominal: true,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'parse_tokens("A \\"b c\\" [d e] -")', result: '["A", "b c", "d e", null]' },
    { source: 'parse_tokens("a b")', result: '["a", "b"]' },
    { source: 'parse_tokens("\\"one token\\"")', result: '["one token"]' },
  ],
  compile: () => (text: string) => {
    const tokens: Value[] = []
    let at = 0
    while (at < text.length) {
      token.lastIndex = at
      const match = token.exec(text)
      const found = match === null ? text.slice(at) : (match[1] ?? match[2] ?? match[3] ?? '')
      tokens.push(found === '' || found === '-' ? null : found)
      if (match === null) break
      at = token.lastIndex
      while (text[at] === ' ' || text[at] === '\t') at++
    }
    return tokens
  },
})
