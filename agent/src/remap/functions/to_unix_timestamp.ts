// Function `to_unix_timestamp`.

import type { Timestamp } from '../../event/timestamp.ts'
import { integer } from '../../event/value.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const toUnixTimestamp = defineFunction({
  name: 'to_unix_timestamp',
  category: 'Convert',
  summary: 'Converts a timestamp to a Unix time.',
  description: 'Fractions are rounded down. Nanoseconds must fit in 64 bits, which holds from 1677 to 2262.',
  parameters: [
    { name: 'value', kind: kinds.timestamp, description: 'The timestamp.' },
    {
      name: 'unit',
      kind: kinds.string,
      required: false,
      default: 'seconds',
      enum: ['seconds', 'milliseconds', 'microseconds', 'nanoseconds'],
      description: 'The unit of the result.',
    },
  ],
  returns: kinds.integer,
  fallible: 'never',
  failsUnannounced: true,
  pure: true,
  examples: [
    { source: "to_unix_timestamp(t'2024-01-01T00:00:00Z')", result: '1704067200' },
    { source: 'to_unix_timestamp(t\'2024-01-01T00:00:00.5Z\', unit: "milliseconds")', result: '1704067200500' },
    { source: "to_unix_timestamp(t'1969-12-31T23:59:59.5Z')", result: '-1' },
  ],
  compile(call) {
    switch (call.constant('unit')) {
      case 'milliseconds':
        return (value: Timestamp) => value.ms
      case 'microseconds':
        return (value: Timestamp) =>
          integer(value.toNanoseconds() / 1000n - (value.ms < 0 && value.ns % 1000 > 0 ? 1n : 0n))
      case 'nanoseconds':
        return (value: Timestamp) =>
          Math.abs(value.ms) > 9_223_372_036_854
            ? failure("can't convert out of range timestamp")
            : integer(value.toNanoseconds())
      default:
        return (value: Timestamp) => Math.floor(value.ms / 1000)
    }
  },
})
