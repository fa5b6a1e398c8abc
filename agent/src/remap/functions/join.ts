// Function `join`.

import { Bytes, type Value } from '../../event/value.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { tooMuch } from '../meter.ts'

export const join = defineFunction({
  name: 'join',
  category: 'String',
  summary: 'Joins the strings of an array.',
  parameters: [
    { name: 'value', kind: kinds.array, description: 'The strings.' },
    { name: 'separator', kind: kinds.string, required: false, description: 'Separator between the strings.' },
  ],
  returns: kinds.string,
  fallible: 'always',
  growth: 'product',
  errors: ['An item is not a string.'],
  pure: true,
  examples: [
    { source: 'join!(["a", "b"], separator: ", ")', result: '"a, b"' },
    { source: 'join!(["a", "b"])', result: '"ab"' },
    { source: 'join!([], separator: ",")', result: '""' },
  ],
  compile:
    ({ runtime: { maxBytes } }) =>
    (items: Value[], separator: string | undefined) => {
      let length = items.length * (separator?.length ?? 0)
      for (let index = 0; index < items.length; index++) {
        const item = items[index]
        if (typeof item !== 'string' && !(item instanceof Bytes)) return failure('all array items must be strings')
        length += typeof item === 'string' ? item.length : item.bytes.length
      }
      if (length > maxBytes) return tooMuch
      return items.join(separator ?? '')
    },
})
