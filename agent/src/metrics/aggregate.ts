// Merges the events of a batch that belong to the same series: adds up increments, keeps the latest absolute value, and uses the latest
// time. The order is that of the first event of each series.

import { MetricEvent } from '../event/metric.ts'
import type { Timestamp } from '../event/timestamp.ts'
import { seriesKey } from './series.ts'
import { addValues } from './values.ts'

export function aggregate(events: readonly MetricEvent[]): MetricEvent[] {
  const places = new Map<string, number>()
  const merged: MetricEvent[] = []
  for (const event of events) {
    const key = `${event.kind} ${seriesKey(event)}`
    const place = places.get(key)
    const before = place === undefined ? undefined : (merged[place] as MetricEvent)
    const both = before === undefined ? undefined : mergedEvent(before, event)
    if (place !== undefined && both !== undefined) {
      merged[place] = both
    } else {
      places.set(key, merged.length)
      merged.push(event)
    }
  }
  return merged
}

/** Merges two events of the same series and kind; undefined if their values cannot be added. */
export function mergedEvent(before: MetricEvent, event: MetricEvent): MetricEvent | undefined {
  const { timestamp } = event
  // A late event does not replace a newer absolute value.
  const isLate = timestamp !== undefined && before.timestamp !== undefined && before.timestamp.compare(timestamp) > 0
  const latest = isLate ? before.value : event.value
  const value = event.kind === 'absolute' ? latest : addValues(before.value, event.value)
  if (value === undefined) return undefined
  return new MetricEvent({
    name: event.name,
    namespace: event.namespace,
    tags: event.tags,
    metadata: event.metadata,
    kind: event.kind,
    intervalMs: event.intervalMs ?? before.intervalMs,
    timestamp: later(before.timestamp, event.timestamp),
    value,
  })
}

/** The later of two times. An event without a time is current, so the result has no time either. */
function later(left: Timestamp | undefined, right: Timestamp | undefined): Timestamp | undefined {
  if (left === undefined || right === undefined) return undefined
  return left.compare(right) > 0 ? left : right
}
