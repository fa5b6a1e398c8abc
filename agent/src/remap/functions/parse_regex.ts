// Function `parse_regex`.

import { Regex, type Value } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { captureParameters, capturesKind, compileCaptures, mayMissGroups } from '../matching.ts'

export const parseRegex = defineFunction({
  name: 'parse_regex',
  category: 'Parse',
  summary: 'Returns the named groups of the first match of a regular expression.',
  description: 'A group without a match is null.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }, ...captureParameters],
  returns: (call) => capturesKind(call.constant('pattern')),
  nominal: (call) => mayMissGroups(call.constant('pattern')),
  fallible: 'always',
  errors: ['The pattern does not match.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source: 'parse_regex!("first group and second group", r\'(?P<number>\\w+) group\')',
      result: '{ "number": "first" }',
    },
    { source: 'parse_regex!("ab", r\'(a)\', numeric_groups: true)', result: '{ "0": "a", "1": "a" }' },
    { source: 'parse_regex("gate", r\'(?P<n>\\d+)\') ?? {"n": "none"}', result: '{ "n": "none" }' },
  ],
  compile(call) {
    const pattern = call.constant('pattern')
    const numeric = call.constant('numeric_groups')
    if (pattern instanceof Regex && typeof numeric === 'boolean') {
      const regex = pattern.compiled
      const captures = compileCaptures(pattern, numeric)
      const noMatch = failure('could not find any pattern matches')
      return (value: string) => {
        const match = regex.exec(value)
        return match === null ? noMatch : captures(match)
      }
    }
    return (value: string, given: Value, numbers: boolean): Result => {
      if (!(given instanceof Regex)) return failure('failed to resolve regex')
      const match = given.compiled.exec(value)
      return match === null ? failure('could not find any pattern matches') : compileCaptures(given, numbers)(match)
    }
  },
})
