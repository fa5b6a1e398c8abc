// Function `snakecase`.

import { type CallSite, defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { originalCase } from '../parameters.ts'
import { valueText } from '../text.ts'
import { splitWords, wordBoundaries } from '../words.ts'

export const snakecase = defineFunction({
  name: 'snakecase',
  category: 'String',
  summary: 'Converts the words of a text to `snake_case`.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    originalCase,
    {
      name: 'excluded_boundaries',
      kind: kinds.array,
      required: false,
      static: true,
      description: `Boundaries at which words are not split: ${wordBoundaries.join(', ')}.`,
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'snakecase("input-string value")', result: '"input_string_value"' },
    { source: 'snakecase("userID42", excluded_boundaries: ["upper_digit"])', result: '"user_id42"' },
    { source: 'snakecase("inputString", original_case: "camelCase")', result: '"input_string"' },
  ],
  compile(call: CallSite) {
    const excluded = new Set<string>()
    const given = call.given('excluded_boundaries') ? call.constant('excluded_boundaries') : []
    for (const boundary of Array.isArray(given) ? given : []) {
      if (typeof boundary !== 'string' || !(wordBoundaries as readonly string[]).includes(boundary)) {
        call.reject(`invalid boundary ${valueText(boundary)}`)
      }
      excluded.add(boundary)
    }
    return (value: string, original: string | undefined) =>
      splitWords(value, original, excluded)
        .map((word) => word.toLowerCase())
        .join('_')
  },
})
