// Function `to_string`.

import { Timestamp } from '../../event/timestamp.ts'
import { Bytes, Float, type Value } from '../../event/value.ts'
import { floatText } from '../../formats/json.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

const fine = kinds.string.or(kinds.number).or(kinds.boolean).or(kinds.null).or(kinds.timestamp)

export const toStringFunction = defineFunction({
  name: 'to_string',
  category: 'Coerce',
  summary: 'Converts a value to text.',
  description: 'Null becomes the empty text, a timestamp its RFC 3339 form, and an integral float has no decimals.',
  parameters: [{ name: 'value', kind: kinds.any, bytes: true, description: 'The value.' }],
  returns: kinds.string,
  fallible: (call) => !call.kind('value').undefinedAsNull.within(fine),
  errors: ['The value is an array, an object or a regex.'],
  pure: true,
  examples: [
    { source: 'to_string(52)', result: '"52"' },
    { source: 'to_string(1.0)', result: '"1"' },
    { source: 'to_string(null)', result: '""' },
  ],
  compile: () => convert,
})

function convert(value: Value): Result {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
      return Number.isInteger(value) ? String(value) : floatText(value)
    case 'bigint':
    case 'boolean':
      return String(value)
  }
  if (value === null) return ''
  if (value instanceof Timestamp) return value.toString()
  if (value instanceof Float) return floatText(value.value)
  if (value instanceof Bytes) return value
  return failure(`unable to coerce ${textOfKind(value)} into string`)
}
