// Function `parse_timestamp`.

import { Timestamp } from '../../event/timestamp.ts'
import type { Value } from '../../event/value.ts'
import { compileStrftime, parseTimestamp, type Strftime } from '../../formats/datetime.ts'
import { zoneOfProgram, zoneOrUtc } from '../../formats/timezone.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind, valueText } from '../text.ts'

export const parseTimestampFunction = defineFunction({
  name: 'parse_timestamp',
  category: 'Parse',
  summary: 'Parses text to a timestamp with strftime items.',
  description:
    'The text must contain a full date and time of day, or a Unix time. The zone of a date without one is `timezone`, else the time zone of the program. A timestamp is returned unchanged.',
  parameters: [
    { name: 'value', kind: kinds.string.or(kinds.timestamp), ownCheck: true, description: 'The text.' },
    { name: 'format', kind: kinds.string, description: 'Text with strftime items, such as `%d/%b/%Y:%T %z`.' },
    {
      name: 'timezone',
      kind: kinds.string,
      required: false,
      description: 'Zone of dates without one: a name in the time zone database, or `local`.',
    },
  ],
  returns: kinds.timestamp,
  fallible: 'always',
  errors: [
    'The text has another format.',
    'The local time does not exist or is ambiguous.',
    'The time zone is unknown.',
  ],
  pure: true,
  examples: [
    { source: 'parse_timestamp!("10-Oct-2020 16:00+00:00", format: "%v %R %:z")', result: "t'2020-10-10T16:00:00Z'" },
    {
      source: 'parse_timestamp!("2024-07-01 12:00:00", "%F %T", timezone: "Europe/Rome")',
      result: "t'2024-07-01T10:00:00Z'",
    },
    { source: 'parse_timestamp("soon", format: "%F") ?? "no time"', result: '"no time"' },
  ],
  compile(call) {
    const standard = zoneOrUtc(call.runtime.timezone)
    let pattern: string | undefined
    let compiled: Strftime | undefined
    return (value: Value, format: string, timezone: string | undefined): Result => {
      if (value instanceof Timestamp) return value
      if (typeof value !== 'string') return failure(`unable to convert ${textOfKind(value)} value to timestamp`)
      if (format !== pattern || compiled === undefined) {
        const fresh = compileStrftime(format)
        if (!fresh.ok) return failure(`Invalid timestamp ${valueText(value)}: bad or unsupported format string`)
        pattern = format
        compiled = fresh
      }
      const zone = timezone === undefined ? standard : zoneOfProgram(timezone)
      if (zone === undefined) return failure(`unable to parse timezone: ${timezone}`)
      return (
        parseTimestamp(compiled, value, zone) ??
        failure(`Invalid timestamp ${valueText(value)}: the text does not match the format or names no valid time`)
      )
    }
  },
})
