// Function `to_float`.

import { Timestamp } from '../../event/timestamp.ts'
import { Float, float, type Value } from '../../event/value.ts'
import { decimalProblem, parseDecimal } from '../../formats/number.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind, valueText } from '../text.ts'

const fine = kinds.number.or(kinds.boolean).or(kinds.null).or(kinds.timestamp)

export const toFloat = defineFunction({
  name: 'to_float',
  category: 'Coerce',
  summary: 'Converts a value to a float.',
  description: 'Null becomes 0.0, true 1.0, and a timestamp its Unix time in seconds.',
  parameters: [{ name: 'value', kind: kinds.any, description: 'The value.' }],
  returns: kinds.float,
  fallible: (call) => !call.kind('value').undefinedAsNull.within(fine),
  failsUnannounced: true,
  errors: [
    'The value is a timestamp before 1677 or after 2262.',
    'The value is a string that is not a number.',
    'The value is an array, an object or a regex.',
  ],
  pure: true,
  examples: [
    { source: 'to_float!("3.145")', result: '3.145' },
    { source: 'to_float(true)', result: '1' },
    { source: 'to_float("three") ?? 0.0', result: '0' },
  ],
  compile: () => convert,
})

function convert(value: Value): Result {
  switch (typeof value) {
    case 'string': {
      const parsed = parseDecimal(value)
      if (parsed !== undefined) return float(parsed)
      if (/^[+-]?nan$/i.test(value)) return failure(`NaN number not supported ${valueText(value)}`)
      return failure(`Invalid floating point number ${valueText(value)}: ${decimalProblem(value)}`)
    }
    case 'number':
    case 'bigint':
      return float(Number(value))
    case 'boolean':
      return float(value ? 1 : 0)
  }
  if (value === null) return float(0)
  if (value instanceof Float) return value
  if (value instanceof Timestamp) {
    const nanoseconds = value.toNanoseconds()
    if (BigInt.asIntN(64, nanoseconds) !== nanoseconds) return failure("can't convert out of range timestamp")
    return float(Number(nanoseconds) / 1e9)
  }
  return failure(`unable to coerce ${textOfKind(value)} into float`)
}
