// Function `strlen`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const strlen = defineFunction({
  name: 'strlen',
  category: 'Enumerate',
  summary: 'Returns the number of characters (code points) of a text.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.integer,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'strlen("né😀")', result: '3' },
    { source: 'strlen("")', result: '0' },
    { source: 'strlen("gate")', result: '4' },
  ],
  compile: () => (value: string) => {
    let count = value.length
    for (let index = 0; index < value.length; index++) if ((value.charCodeAt(index) & 0xfc00) === 0xdc00) count--
    return count
  },
})
