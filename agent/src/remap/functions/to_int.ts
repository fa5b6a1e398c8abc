// Function `to_int`.

import { Timestamp } from '../../event/timestamp.ts'
import { Float, integer, type Value } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind, valueText } from '../text.ts'

const largest = 9223372036854775807n
const smallest = -9223372036854775808n
const unsafe = kinds.string.or(kinds.array).or(kinds.object).or(kinds.regex)

export const toInt = defineFunction({
  name: 'to_int',
  category: 'Coerce',
  summary: 'Converts a value to an integer.',
  parameters: [{ name: 'value', kind: kinds.any, description: 'The value.' }],
  returns: kinds.integer,
  fallible: (call) => call.kind('value').overlaps(unsafe),
  errors: ['The value is a string that is not a decimal integer.', 'The value is an array, an object or a regex.'],
  pure: true,
  examples: [
    { source: 'to_int!("42")', result: '42' },
    { source: 'to_int(2.9)', result: '2' },
    { source: 'to_int(true)', result: '1' },
  ],
  compile: () => convert,
})

function convert(value: Value): Result {
  if (typeof value === 'string') return parse(value)
  if (typeof value === 'number') return Number.isInteger(value) ? value : fromFloat(value)
  if (typeof value === 'bigint') return value
  if (value === null) return 0
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Float) return fromFloat(value.value)
  if (value instanceof Timestamp) return Math.floor(value.ms / 1000)
  return failure(`unable to coerce ${textOfKind(value)} into integer`)
}

function fromFloat(value: number): number | bigint {
  if (Number.isNaN(value)) return 0
  const whole = Math.trunc(value)
  if (Number.isSafeInteger(whole)) return whole === 0 ? 0 : whole
  if (whole >= 2 ** 63) return largest
  if (whole <= -(2 ** 63)) return smallest
  return integer(BigInt(whole))
}

function parse(text: string): Result {
  const digits = text.length
  // Up to fifteen characters fit exactly in a double, which covers nearly all texts.
  if (digits < 16 && /^[+-]?[0-9]+$/.test(text)) return Number(text) + 0
  if (digits === 0) return failure(`Invalid integer ${valueText(text)}: cannot parse integer from empty string`)
  if (!/^[+-]?[0-9]+$/.test(text)) return failure(`Invalid integer ${valueText(text)}: invalid digit found in string`)
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text)
  if (value > largest) return failure(`Invalid integer ${valueText(text)}: number too large to fit in target type`)
  if (value < smallest) return failure(`Invalid integer ${valueText(text)}: number too small to fit in target type`)
  return integer(value)
}
