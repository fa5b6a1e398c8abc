// The time of an event, in the field that an option or the log schema names. It is a timestamp, or text from JSON and files: RFC 3339,
// or one of the forms that `guessTimestamp` knows. Any other value is no time: the event keeps it, and it is counted, and logged once.

import type { SinkContext } from './component.ts'
import type { LogEvent } from './event/log.ts'
import { getPath, getValue, type Path, type PathSegment } from './event/path.ts'
import { Timestamp } from './event/timestamp.ts'
import type { Value, ValueObject } from './event/value.ts'
import { guessTimestamp } from './formats/datetime.ts'
import { utc, type Zone, zoneOrUtc } from './formats/timezone.ts'
import { warnedOnce } from './telemetry/warned-once.ts'

/** Longer text is not looked at: no form of a time needs this many characters. */
const maxLength = 64

/** The instant that a value stands for; dates without a zone are in the one given. Undefined if it is no time. */
export function instantOf(value: Value | undefined, zone: Zone = utc): Timestamp | undefined {
  if (value instanceof Timestamp) return value
  return typeof value === 'string' && value.length <= maxLength ? guessTimestamp(value, zone) : undefined
}

export interface TimeField {
  /** The instant of an event; undefined if the field is absent or holds no time, which is noted. */
  of(fields: ValueObject): Timestamp | undefined
  /** The same, of an event for which no object has to be made. */
  ofEvent(event: LogEvent): Timestamp | undefined
  /** The same, of the value of the field. */
  ofValue(value: Value | undefined): Timestamp | undefined
  /** Counts what has been noted. For each run of events. */
  report(): void
}

type ReportContext = Pick<SinkContext, 'globals' | 'events'>

/**
 * Counts times that cannot be read, and logs the first.
 * @param option what names the field
 */
function unreadableTimes(option: string, field: string, context: ReportContext): (count: number) => void {
  return warnedOnce(context.events, {
    type: 'conversion_failed',
    stage: 'processing',
    code: 'unreadable_time',
    message: `The field that \`${option}\` names holds no time; it stays in the event, which is sent as one without a time.`,
    fields: { field },
  })
}

/** Those of the events' own time, which is the clock of templates. */
export function unreadableEventTimes(context: ReportContext): (count: number) => void {
  return unreadableTimes('log_schema.timestamp_key', context.globals.logSchema.timestampKey, context)
}

/** @param option what names the field, for the report */
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
