// Function `truncate`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const truncate = defineFunction({
  name: 'truncate',
  category: 'String',
  summary: 'Truncates a text to a number of characters.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'limit', kind: kinds.integer, description: 'Number of characters to keep.' },
    {
      name: 'suffix',
      kind: kinds.string,
      required: false,
      description: 'Text appended to a truncated text, beyond the limit.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'truncate("Seven pumps", limit: 5)', result: '"Seven"' },
    { source: 'truncate("Seven pumps", 5, suffix: "...")', result: '"Seven..."' },
    { source: 'truncate("Seven", limit: 9, suffix: "...")', result: '"Seven"' },
  ],
  compile: () => (value: string, limit: number | bigint, suffix: string | undefined) => {
    const max = Math.max(0, Number(limit))
    if (value.length <= max) return value
    let at = 0
    for (let count = 0; count < max && at < value.length; count++) {
      at += (value.codePointAt(at) as number) > 0xffff ? 2 : 1
    }
    return at >= value.length ? value : value.slice(0, at) + (suffix ?? '')
  },
})
