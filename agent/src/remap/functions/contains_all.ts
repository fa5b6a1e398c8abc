// Function `contains_all`.

import { Bytes, type Value } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

export const containsAll = defineFunction({
  name: 'contains_all',
  category: 'String',
  summary: 'Tells whether a text contains every string of an array.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'substrings', kind: kinds.array, description: 'The texts to look for.' },
    {
      name: 'case_sensitive',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether letter case counts.',
    },
  ],
  returns: kinds.boolean,
  fallible: (call) => {
    const parts = call.kind('substrings').elements
    return !parts.isNever && !parts.within(kinds.string)
  },
  errors: ['An item of the array is not a string.'],
  pure: true,
  examples: [
    { source: 'contains_all("The seventh pump", ["seven", "pump"])', result: 'true' },
    { source: 'contains_all("The seventh pump", ["seven", "tank"])', result: 'false' },
    { source: 'contains_all("The Seventh Pump", ["PUMP"], case_sensitive: false)', result: 'true' },
  ],
  compile:
    () =>
    (value: string, parts: Value[], caseSensitive: boolean): Result => {
      const text = caseSensitive ? value : value.toLowerCase()
      for (const part of parts) {
        if (typeof part !== 'string' && !(part instanceof Bytes))
          return failure(`expected string, got ${textOfKind(part)}`)
        if (!text.includes(caseSensitive ? String(part) : String(part).toLowerCase())) return false
      }
      return true
    },
})
