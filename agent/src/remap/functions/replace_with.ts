// Replaces the matches of a regular expression with a closure's results.

import { Regex, type ValueObject } from '../../event/value.ts'
import { type Closure, defineFunction, failure, isFailure, type RemapError, type Result } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'
import { compileCaptures, eachMatch } from '../matching.ts'
import { tooMuch } from '../meter.ts'
import { groupNames } from '../regex.ts'

export const replaceWith = defineFunction({
  name: 'replace_with',
  category: 'String',
  summary: 'Replaces the matches of a regular expression with the results of a closure.',
  description:
    'The closure receives an object: `string`, the whole match; `captures`, an array of the groups, with null for groups without a match; and a field for each named group.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'pattern', kind: kinds.regex, description: 'The pattern to replace.' },
    {
      name: 'count',
      kind: kinds.integer,
      required: false,
      default: -1,
      description: 'Maximum number of replacements; -1 for all.',
    },
  ],
  closure: {
    parameters: (call) => {
      const textOrNull = kinds.string.or(kinds.null)
      const own = { string: kinds.string, captures: kinds.arrayEach(textOrNull) }
      const pattern = call.constant('pattern')
      if (!(pattern instanceof Regex)) return [kinds.objectWith(own, textOrNull)]
      const fields: Record<string, Kind> = {}
      for (const name of groupNames(pattern)) if (name !== undefined) fields[name] = textOrNull
      return [kinds.objectOf({ ...fields, ...own })]
    },
    result: kinds.string,
  },
  returns: kinds.string,
  fallible: (call) => call.closureFallible,
  failsUnannounced: true,
  growth: 'product',
  errors: ['A group of the pattern is named `string` or `captures`.'],
  pure: true,
  examples: [
    {
      source: 'replace_with("a", r\'(?P<string>a)\') -> |m| { m.string }',
      result:
        'fails: function call error for "replace_with" at (0:55): Capture group cannot be named "string" or "captures"',
    },
    { source: 'replace_with("abc def", r\'\\w+\') -> |m| { upcase(m.string) }', result: '"ABC DEF"' },
    {
      source: 'replace_with("a1 b2", r\'(\\w)(\\d)\') -> |m| { string!(m.captures[1]) + string!(m.captures[0]) }',
      result: '"1a 2b"',
    },
    { source: 'replace_with("abc", r\'x\') -> |_m| { "y" }', result: '"abc"' },
  ],
  compile({ runtime: { maxBytes } }) {
    return (value: string, pattern: Regex, count: number | bigint, closure: Closure): Result => {
      if (groupNames(pattern).some((name) => name === 'string' || name === 'captures')) {
        return failure('Capture group cannot be named "string" or "captures"')
      }
      if (count === 0) return value
      const max = count < 0 ? Number.POSITIVE_INFINITY : Number(count)
      const named = compileCaptures(pattern, false)
      let result = ''
      let at = 0
      let done = 0
      let failed: RemapError | undefined
      eachMatch(pattern, value, (match) => {
        const found: ValueObject = named(match)
        found['string'] = match[0]
        found['captures'] = match.slice(1).map((group) => group ?? null)
        const given = closure(found)
        if (isFailure(given)) {
          failed = given
          return false
        }
        result += value.slice(at, match.index) + String(given)
        at = match.index + match[0].length
        return ++done < max && result.length <= maxBytes
      })
      if (result.length > maxBytes) return tooMuch
      return failed ?? result + value.slice(at)
    }
  },
})
