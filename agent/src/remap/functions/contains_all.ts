// Function `contains_all`.

import { Bytes, type Value } from '../../event/value.ts'
import { caseSensitive } from '../elements.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

export const containsAll = defineFunction({
  name: 'contains_all',
  category: 'String',
  summary: 'Returns whether a text contains every string of an array.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'substrings', kind: kinds.array, description: 'The texts to search for.' },
    caseSensitive,
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
    (value: string, parts: Value[], exactly: boolean): Result => {
      const text = exactly ? value : value.toLowerCase()
      for (const part of parts) {
        if (typeof part !== 'string' && !(part instanceof Bytes))
          return failure(`expected string, got ${textOfKind(part)}`)
        if (!text.includes(exactly ? String(part) : String(part).toLowerCase())) return false
      }
      return true
    },
})
