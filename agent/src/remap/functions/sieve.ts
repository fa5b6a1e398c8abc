// Function `sieve`.

import type { Regex } from '../../event/value.ts'
import { defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { eachMatch } from '../matching.ts'
import { tooMuch } from '../meter.ts'

export const sieve = defineFunction({
  name: 'sieve',
  category: 'String',
  summary: 'Keeps the matches of a regular expression and replaces the text between them.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'permitted_characters', kind: kinds.regex, description: 'The characters to keep.' },
    {
      name: 'replace_single',
      kind: kinds.string,
      required: false,
      default: '',
      description: 'Replacement of a single byte.',
    },
    {
      name: 'replace_repeated',
      kind: kinds.string,
      required: false,
      default: '',
      description: 'Replacement of several bytes.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  growth: 'product',
  pure: true,
  examples: [
    { source: 'sieve("Gate, Seven", r\'[a-z]\', replace_single: "*")', result: '"*ateeven"' },
    { source: 'sieve("gate 7", r\'[a-z]\', replace_single: "_", replace_repeated: "~")', result: '"gate"' },
    { source: 'sieve("a.b.c", r\'[a-z.]\')', result: '"a.b.c"' },
  ],
  compile:
    ({ runtime: { maxBytes } }) =>
    (value: string, permitted: Regex, single: string, repeated: string): Result => {
      let result = ''
      let at = 0
      eachMatch(permitted, value, (match) => {
        if (match.index > at) result += Buffer.byteLength(value.slice(at, match.index)) === 1 ? single : repeated
        result += match[0]
        at = match.index + match[0].length
        return result.length <= maxBytes
      })
      return result.length <= maxBytes ? result : tooMuch
    },
})
