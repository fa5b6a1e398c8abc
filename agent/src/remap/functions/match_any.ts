// Function `match_any`.

import { Regex } from '../../event/value.ts'
import { type CallSite, defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const matchAny = defineFunction({
  name: 'match_any',
  category: 'String',
  summary: 'Returns whether any of several regular expressions matches in a text.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'patterns', kind: kinds.array, static: true, description: 'The patterns, as literals.' },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: "match_any(\"oxbow lock\", [r'gate', r'lock$'])", result: 'true' },
    { source: 'match_any("oxbow lock", [r\'gate\'])', result: 'false' },
    { source: 'match_any("oxbow lock", [])', result: 'false' },
  ],
  compile(call: CallSite) {
    const given = call.constant('patterns')
    const patterns: RegExp[] = []
    for (const pattern of Array.isArray(given) ? given : [null]) {
      if (!(pattern instanceof Regex)) call.reject('"patterns" must be an array of regex literals')
      patterns.push(pattern.compiled)
    }
    return (value: string) => {
      for (let index = 0; index < patterns.length; index++) if ((patterns[index] as RegExp).test(value)) return true
      return false
    }
  },
})
