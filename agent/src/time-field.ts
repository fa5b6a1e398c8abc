// Reads the time of an event from the field that an option or the log schema names. The value is a timestamp, or text in RFC 3339 or
// another format that `guessTimestamp` recognises. The event keeps any other value, which is counted as unreadable, and logged the
// first time.

import type { SinkContext } from './component.ts'
import type { LogEvent } from './event/log.ts'
import { getPath, getValue, type Path, type PathSegment } from './event/path.ts'
import { Timestamp } from './event/timestamp.ts'
import type { Value, ValueObject } from './event/value.ts'
import { guessTimestamp } from './formats/datetime.ts'
import { utc, type Zone, zoneOrUtc } from './formats/timezone.ts'
import { warnedOnce } from './telemetry/warned-once.ts'

/** Longer text is never a time, because no time format needs more characters. */
const maxLength = 64

/** Converts a value to an instant; undefined if it is not a time. `zone` applies to dates without a time zone. */
export function instantOf(value: Value | undefined, zone: Zone = utc): Timestamp | undefined {
  if (value instanceof Timestamp) return value
  return typeof value === 'string' && value.length <= maxLength ? guessTimestamp(value, zone) : undefined
}

export interface TimeField {
  /** The instant of an event; undefined if the field is missing, or is not a time and was therefore counted. */
  of(fields: ValueObject): Timestamp | undefined
  /** The same, without creating the fields of an event that does not have them yet. */
  ofEvent(event: LogEvent): Timestamp | undefined
  /** The same for the value of the field. */
  ofValue(value: Value | undefined): Timestamp | undefined
  /** Reports the unreadable times since the last call. Call it once for each run of events. */
  report(): void
}

type ReportContext = Pick<SinkContext, 'globals' | 'events'>

/**
 * Counts unreadable times, and logs the first.
 * @param option the option that names the field
 */
function unreadableTimes(option: string, field: string, context: ReportContext): (count: number) => void {
  return warnedOnce(context.events, {
    type: 'conversion_failed',
    stage: 'processing',
    code: 'unreadable_time',
    message: `The field that \`${option}\` names does not contain a time; the event keeps the field, and is sent without a time.`,
    fields: { field },
  })
}

/** Reports unreadable times in the timestamp field of events, which templates use as their clock. */
export function unreadableEventTimes(context: ReportContext): (count: number) => void {
  return unreadableTimes('log_schema.timestamp_key', context.globals.logSchema.timestampKey, context)
}

/** @param option the option that names the field, for the report */
export function timeField(segments: readonly PathSegment[], option: string, context: ReportContext): TimeField {
  const zone = zoneOrUtc(context.globals.timezone)
  let unreadable = 0
  const reportUnreadable = unreadableTimes(option, segments.join('.'), context)
  const read = (value: Value | undefined) => {
    if (value instanceof Timestamp) return value
    if (value === undefined || value === null) return undefined
    const instant = instantOf(value, zone)
    if (instant === undefined) unreadable++
    return instant
  }
  const path: Path = { root: 'event', segments }
  return {
    of: (fields) => read(getValue(fields, segments)),
    ofEvent: (event) => read(getPath(event, path)),
    ofValue: read,
    report() {
      reportUnreadable(unreadable)
      unreadable = 0
    },
  }
}
