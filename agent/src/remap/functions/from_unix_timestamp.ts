// Function `from_unix_timestamp`.

import { Timestamp } from '../../event/timestamp.ts'
import { isInteger, type Value } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

const units = ['seconds', 'milliseconds', 'microseconds', 'nanoseconds']

// The first and last valid instants: the years -262143 and 262142.
const initialMs = -8_334_601_228_800_000
const lastMs = 8_210_266_876_799_999

export const fromUnixTimestamp = defineFunction({
  name: 'from_unix_timestamp',
  category: 'Convert',
  summary: 'Converts a Unix time to a timestamp.',
  parameters: [
    { name: 'value', kind: kinds.integer, ownCheck: true, description: 'The Unix time.' },
    { name: 'unit', kind: kinds.string, required: false, default: 'seconds', enum: units, description: 'Its unit.' },
  ],
  returns: kinds.timestamp,
  fallible: 'always',
  errors: ['The value is out of range for timestamps.'],
  pure: true,
  examples: [
    { source: 'from_unix_timestamp!(1704067200)', result: "t'2024-01-01T00:00:00Z'" },
    { source: 'from_unix_timestamp!(1704067200123, unit: "milliseconds")', result: "t'2024-01-01T00:00:00.123Z'" },
    { source: 'from_unix_timestamp(8210266876800) ?? "too late"', result: '"too late"' },
    { source: 'from_unix_timestamp!(-1)', result: "t'1969-12-31T23:59:59Z'" },
  ],
  compile(call) {
    const unit = call.constant('unit') as string
    return (value: Value): Result => {
      if (!isInteger(value)) return failure(`unable to coerce ${textOfKind(value)} into timestamp`)
      if (typeof value === 'number') {
        if (unit === 'seconds' && value >= initialMs / 1000 && value <= lastMs / 1000)
          return new Timestamp(value * 1000, 0)
        if (unit === 'milliseconds' && value >= initialMs && value <= lastMs) return new Timestamp(value, 0)
      }
      const nanoseconds = BigInt(value) * 1000n ** BigInt(3 - units.indexOf(unit))
      return nanoseconds < BigInt(initialMs) * 1_000_000n || nanoseconds >= BigInt(lastMs + 1) * 1_000_000n
        ? failure(`unable to coerce ${value} into timestamp`)
        : Timestamp.fromNanoseconds(nanoseconds)
    }
  },
})
