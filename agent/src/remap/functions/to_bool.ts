// Function `to_bool`.

import { Float, type Value } from '../../event/value.ts'
import { parseBoolean } from '../../formats/number.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind, valueText } from '../text.ts'

const fine = kinds.number.or(kinds.boolean).or(kinds.null)

export const toBool = defineFunction({
  name: 'to_bool',
  category: 'Coerce',
  summary: 'Converts a value to a boolean.',
  description:
    'Accepts the texts `true`, `t`, `yes`, `y` and `false`, `f`, `no`, `n` in any letter case, or a decimal integer. Numbers are true unless they are zero; null is false.',
  parameters: [{ name: 'value', kind: kinds.any, description: 'The value.' }],
  returns: kinds.boolean,
  fallible: (call) => !call.kind('value').undefinedAsNull.within(fine),
  errors: ['The value cannot be converted to a boolean.'],
  pure: true,
  examples: [
    { source: 'to_bool("99999999999999999999") ?? "more than 64 bits"', result: '"more than 64 bits"' },
    { source: 'to_bool!("yes")', result: 'true' },
    { source: 'to_bool(0)', result: 'false' },
    { source: 'to_bool("maybe") ?? null', result: 'null' },
  ],
  compile: () => convert,
})

function convert(value: Value): Result {
  switch (typeof value) {
    case 'boolean':
      return value
    case 'string':
      return parseBoolean(value) ?? failure(`Invalid boolean value ${valueText(value)}`)
    case 'number':
      return value !== 0
    case 'bigint':
      return value !== 0n
  }
  if (value === null) return false
  if (value instanceof Float) return value.value !== 0
  return failure(`unable to coerce ${textOfKind(value)} into boolean`)
}
