// Function `to_timestamp`.

import { Timestamp } from '../../event/timestamp.ts'
import type { Float } from '../../event/value.ts'
import { guessTimestamp } from '../../formats/datetime.ts'
import { zoneOrUtc } from '../../formats/timezone.ts'
import { defineFunction, failure, type Result, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

export const toTimestamp = defineFunction({
  name: 'to_timestamp',
  category: 'Coerce',
  summary: 'Converts a value to a timestamp.',
  description:
    'Numbers are Unix times in `unit`. Texts are tried against common date formats; if the format is known, `parse_timestamp` is faster and stricter.',
  parameters: [
    { name: 'value', kind: kinds.string.or(kinds.number).or(kinds.timestamp), description: 'The value.' },
    {
      name: 'unit',
      kind: kinds.string,
      required: false,
      default: 'seconds',
      enum: ['seconds', 'milliseconds', 'microseconds', 'nanoseconds'],
      description: 'The unit of numbers.',
    },
  ],
  returns: kinds.timestamp,
  fallible: (call) => !call.kind('value').within(kinds.timestamp),
  errors: ['The text is not a date in a known format.', 'The number is out of range.'],
  pure: true,
  examples: [
    { source: 'to_timestamp!("2024-02-29T10:11:12+01:00")', result: "t'2024-02-29T09:11:12Z'" },
    { source: 'to_timestamp!(1704067200)', result: "t'2024-01-01T00:00:00Z'" },
    { source: 'to_timestamp!(1704067200500, unit: "milliseconds")', result: "t'2024-01-01T00:00:00.500Z'" },
  ],
  compile(call) {
    const zone = zoneOrUtc(call.runtime.timezone)
    const perUnit = { seconds: 1e9, milliseconds: 1e6, microseconds: 1e3, nanoseconds: 1 }
    const scale = perUnit[call.constant('unit') as keyof typeof perUnit]
    return (value: string | number | bigint | Float | Timestamp): Result => {
      if (value instanceof Timestamp) return value
      if (typeof value === 'string') {
        return guessTimestamp(value, zone) ?? failure(`unable to parse timestamp ${valueText(value)}`)
      }
      if (typeof value === 'bigint' || Number.isInteger(value)) {
        const nanoseconds = BigInt(value as number | bigint) * BigInt(scale)
        const seconds = nanoseconds / 1_000_000_000n
        return seconds > 253_402_300_799n || seconds < -62_135_596_800n
          ? failure(`unable to coerce ${value} into timestamp`)
          : Timestamp.fromNanoseconds(nanoseconds)
      }
      const seconds = (toNumber(value as number | Float) * scale) / 1e9
      if (!(Math.abs(seconds) <= 253_402_300_799)) return failure(`unable to coerce ${seconds} into timestamp`)
      const ms = Math.floor(seconds * 1000)
      return new Timestamp(ms, Math.max(0, Math.min(999_999, Math.round((seconds * 1000 - ms) * 1e6))))
    }
  },
})
