// Function `is_json`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

const variants = ['object', 'array', 'string', 'number', 'bool', 'null']

export const isJson = defineFunction({
  name: 'is_json',
  category: 'Type',
  summary: 'Returns whether a text is a JSON document.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    {
      name: 'variant',
      kind: kinds.string,
      required: false,
      enum: variants,
      description: 'The required type of the document.',
    },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'is_json("[1]")', result: 'true' },
    { source: 'is_json("[1]", variant: "object")', result: 'false' },
    { source: 'is_json("{")', result: 'false' },
    { source: 'is_json("1e999", variant: "number")', result: 'true' },
  ],
  compile: () => (text: string, variant: string | undefined) => {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return false // not of the requested type
    }
    return variant === undefined || variant === variantOf(value)
  },
})

function variantOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}
