// Function `encode_key_value`.

import type { Value, ValueObject } from '../../event/value.ts'
import { writeKeyValue } from '../../formats/key-value.ts'
import { fieldOrder } from '../elements.ts'
import { defineFunction, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { delimiters, fieldsOrdering } from '../parameters.ts'

export const encodeKeyValue = defineFunction({
  name: 'encode_key_value',
  category: 'Codec',
  summary: 'Encodes an object as key-value text, with nested fields flattened.',
  parameters: [
    { name: 'value', kind: kinds.object, description: 'The object.' },
    fieldsOrdering,
    ...delimiters,
    {
      name: 'flatten_boolean',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to write only the key for true, and nothing for false.',
    },
  ],
  returns: kinds.string,
  fallible: (call) => call.given('fields_ordering'),
  errors: ['An item of `fields_ordering` is not a string.'],
  pure: true,
  examples: [
    { source: 'encode_key_value({"b": 1, "a": "x y"})', result: '"a=\\"x y\\" b=1"' },
    { source: 'encode_key_value!({"a": 1, "b": 2}, ["b", "a", "b"])', result: '"b=2 a=1"' },
    {
      source: '_, err = encode_key_value({"a": 1}, ["a", 2])\nerr',
      result:
        '"function call error for \\"encode_key_value\\" at (9:45): invalid field value type at index 1: expected string, got integer"',
    },
    { source: 'encode_key_value({"a": {"b": [1, null]}})', result: '"a.b.0=1 a.b.1=null"' },
    {
      source:
        'encode_key_value({"a": 1, "flag": true}, key_value_delimiter: ":", field_delimiter: ",", flatten_boolean: true)',
      result: '"a:1,flag"',
    },
  ],
  compile:
    () =>
    (
      value: ValueObject,
      order: Value[],
      keyValueDelimiter: string,
      fieldDelimiter: string,
      flattenBoolean: boolean,
    ): Result => {
      const first = fieldOrder(order)
      return isFailure(first)
        ? first
        : writeKeyValue(value, { keyValueDelimiter, fieldDelimiter, first, flattenBoolean })
    },
})
