// Function `is_json`.

import { isFloat, isInteger, isObject } from '../../event/value.ts'
import { isFailedJson, parseJson } from '../../formats/json.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

const variants = ['object', 'array', 'string', 'number', 'bool', 'null']

export const isJson = defineFunction({
  name: 'is_json',
  category: 'Type',
  summary: 'Tells whether a text is a JSON document.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    {
      name: 'variant',
      kind: kinds.string,
      required: false,
      enum: variants,
      description: 'The type that the document must have.',
    },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'is_json("[1]")', result: 'true' },
    { source: 'is_json("[1]", variant: "object")', result: 'false' },
    { source: 'is_json("{")', result: 'false' },
  ],
  compile: () => (text: string, variant: string | undefined) => {
    const value = parseJson(text)
    if (isFailedJson(value)) return false
    switch (variant) {
      case 'object':
        return isObject(value)
      case 'array':
        return Array.isArray(value)
      case 'string':
        return typeof value === 'string'
      case 'number':
        return isInteger(value) || isFloat(value)
      case 'bool':
        return typeof value === 'boolean'
      case 'null':
        return value === null
      default:
        return true
    }
  },
})
