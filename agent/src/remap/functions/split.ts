// Function `split`.

import { Regex } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { eachMatch } from '../matching.ts'
import { compileRegex } from '../regex.ts'

export const split = defineFunction({
  name: 'split',
  category: 'String',
  summary: 'Splits a text at every match of a pattern.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'pattern', kind: kinds.string.or(kinds.regex), description: 'The separator.' },
    {
      name: 'limit',
      kind: kinds.integer,
      required: false,
      description: 'Maximum number of parts; the last one contains the rest.',
    },
  ],
  returns: kinds.arrayEach(kinds.string),
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'split("a,b,c", ",")', result: '["a", "b", "c"]' },
    { source: 'split("a,b,c", ",", limit: 2)', result: '["a", "b,c"]' },
    { source: 'split("a1b22c", r\'[0-9]+\')', result: '["a", "b", "c"]' },
  ],
  compile(call) {
    if (call.given('limit') || typeof call.constant('pattern') !== 'string' || call.constant('pattern') === '') {
      return (value: string, pattern: string | Regex, limit: number | bigint | undefined) =>
        splitText(value, pattern, limit === undefined ? Number.POSITIVE_INFINITY : Number(limit))
    }
    return (value: string, pattern: string) => value.split(pattern)
  },
})

function splitText(value: string, pattern: string | Regex, limit: number): string[] {
  const parts: string[] = []
  if (limit <= 0) return parts
  let from = 0
  if (typeof pattern === 'string' && pattern !== '') {
    while (parts.length < limit - 1) {
      const at = value.indexOf(pattern, from)
      if (at < 0) break
      parts.push(value.slice(from, at))
      from = at + pattern.length
    }
  } else if (parts.length < limit - 1) {
    eachMatch(pattern instanceof Regex ? pattern : everywhere, value, (match) => {
      parts.push(value.slice(from, match.index))
      from = match.index + match[0].length
      return parts.length < limit - 1
    })
  }
  parts.push(value.slice(from))
  return parts
}

const everywhere = compileRegex('') as Regex
