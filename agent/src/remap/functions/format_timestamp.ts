// Function `format_timestamp`.

import type { Timestamp } from '../../event/timestamp.ts'
import { compileStrftime, formatTimestamp, type Strftime } from '../../formats/datetime.ts'
import { utc, type Zone, zoneOfProgram } from '../../formats/timezone.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const formatTimestampFunction = defineFunction({
  name: 'format_timestamp',
  category: 'Timestamp',
  summary: 'Formats a timestamp with strftime items.',
  parameters: [
    { name: 'value', kind: kinds.timestamp, description: 'The timestamp.' },
    { name: 'format', kind: kinds.string, description: 'Text with strftime items, such as `%Y-%m-%d`.' },
    {
      name: 'timezone',
      kind: kinds.string,
      required: false,
      description: 'Name in the time zone database, or `local`; UTC if absent.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The format contains an unknown item.', 'The time zone is unknown.'],
  pure: true,
  examples: [
    {
      source: 'format_timestamp!(t\'2024-02-09T05:06:07Z\', "%d/%b/%Y:%T %z")',
      result: '"09/Feb/2024:05:06:07 +0000"',
    },
    {
      source: 'format_timestamp!(t\'2024-07-01T12:00:00Z\', "%T %Z", timezone: "America/New_York")',
      result: '"08:00:00 EDT"',
    },
    { source: 'format_timestamp!(t\'2024-02-09T05:06:07.089Z\', "%s %3f")', result: '"1707455167 089"' },
  ],
  compile() {
    let pattern: string | undefined
    let compiled: Strftime | undefined
    let zoneName: string | undefined
    let zone: Zone = utc
    return (value: Timestamp, format: string, timezone: string | undefined): Result => {
      if (format !== pattern || compiled === undefined) {
        const fresh = compileStrftime(format)
        if (!fresh.ok) return failure('invalid format')
        pattern = format
        compiled = fresh
      }
      if (timezone !== undefined && timezone !== zoneName) {
        const found = zoneOfProgram(timezone)
        if (found === undefined) return failure(`unable to parse timezone: ${timezone}`)
        zoneName = timezone
        zone = found
      }
      return formatTimestamp(compiled, value, zone)
    }
  },
})
