// Events for tests, written as plain objects.

import { LogEvent } from '../event/log.ts'
import { MetricEvent, type MetricParts, type MetricValue, type TagValue } from '../event/metric.ts'
import { Timestamp } from '../event/timestamp.ts'
import type { Value, ValueObject } from '../event/value.ts'

/** Parses an RFC 3339 instant in UTC (`2026-01-01T00:00:02.123456789Z`). */
export function at(text: string): Timestamp {
  const match = /^(.*T\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(text)
  if (match === null) throw new TypeError(`Not an instant in UTC: ${text}`)
  const fraction = (match[2] ?? '').padEnd(9, '0')
  return new Timestamp(Date.parse(`${match[1]}Z`) + Number(fraction.slice(0, 3)), Number(fraction.slice(3)))
}

/** A log event. A string in `timestamp` becomes a timestamp. */
export function log(fields: Record<string, Value>): LogEvent {
  const root: ValueObject = { ...fields }
  if (typeof fields['timestamp'] === 'string') root['timestamp'] = at(fields['timestamp'])
  return new LogEvent(root)
}

/** A metric event at 2026-01-01T00:00:02.123456789Z; incremental by default. */
export function metric(
  name: string,
  value: MetricValue,
  { tags, ...parts }: Partial<Omit<MetricParts, 'tags'>> & { readonly tags?: Record<string, TagValue> } = {},
): MetricEvent {
  return new MetricEvent({
    name,
    value,
    kind: 'incremental',
    timestamp: at('2026-01-01T00:00:02.123456789Z'),
    ...(tags === undefined ? {} : { tags: new Map(Object.entries(tags)) }),
    ...parts,
  })
}
