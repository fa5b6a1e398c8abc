// Function `parse_regex_all`.

import { Bytes, Regex, type Value } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { captureParameters, capturesKind, compileCaptures, eachMatch, mayMissGroups } from '../matching.ts'
import { textOfKind } from '../text.ts'

export const parseRegexAll = defineFunction({
  name: 'parse_regex_all',
  category: 'Parse',
  summary: 'Returns the named groups of all matches of a regular expression.',
  parameters: [{ name: 'value', kind: kinds.any, description: 'The text.' }, ...captureParameters],
  returns: (call) => kinds.arrayEach(capturesKind(call.constant('pattern'))),
  nominal: (call) => mayMissGroups(call.constant('pattern')),
  fallible: 'always',
  errors: ['The value is not a string.'],
  pure: true,
  examples: [
    {
      source: 'parse_regex_all!("a1 b22", r\'(?P<l>[a-z])(?P<n>\\d+)\')',
      result: '[{ "l": "a", "n": "1" }, { "l": "b", "n": "22" }]',
    },
    { source: 'parse_regex_all!("no digits", r\'(?P<n>\\d+)\')', result: '[]' },
    {
      source: 'parse_regex_all!("a1", r\'([a-z])(\\d)\', numeric_groups: true)',
      result: '[{ "0": "a1", "1": "a", "2": "1" }]',
    },
  ],
  compile:
    () =>
    (value: Value, pattern: Value, numeric: boolean): Result => {
      if (typeof value !== 'string' && !(value instanceof Bytes))
        return failure(`expected string, got ${textOfKind(value)}`)
      if (!(pattern instanceof Regex)) return failure('failed to resolve regex')
      const captures = compileCaptures(pattern, numeric)
      const found: Value[] = []
      eachMatch(pattern, String(value), (match) => {
        found.push(captures(match))
        return true
      })
      return found
    },
})
