// Metrics as the target of a program: an object of name, namespace, timestamp, kind, interval, type and tags. Unsupported
// writes have no effect.

import { type MetricEvent, type MetricTags, singleTagValue, type TagValue } from '../event/metric.ts'
import type { PathSegment } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField, isObject, setField, type Value, type ValueObject } from '../event/value.ts'

/** How tags are represented: as their last value, always as arrays, or depending on the number of values. */
export type TagMode = 'single' | 'full' | 'auto'

const typeNames: Readonly<Record<MetricEvent['value']['type'], string>> = {
  counter: 'counter',
  gauge: 'gauge',
  set: 'set',
  distribution: 'distribution',
  histogram: 'aggregated histogram',
  summary: 'aggregated summary',
}

/** The object that a program sees. It belongs to the caller. */
export function metricObject(metric: MetricEvent, mode: TagMode): ValueObject {
  return {
    name: metric.name,
    namespace: metric.namespace,
    timestamp: metric.timestamp,
    kind: metric.kind,
    interval_ms: metric.intervalMs,
    type: typeNames[metric.value.type],
    tags: metric.tags === undefined || metric.tags.size === 0 ? undefined : tagsObject(metric.tags, mode),
  }
}

function tagsObject(tags: MetricTags, mode: TagMode): ValueObject {
  const object: ValueObject = {}
  for (const [name, value] of tags) setField(object, name, shownTag(value, mode))
  return object
}

function shownTag(value: TagValue, mode: TagMode): Value {
  if (mode === 'single') return singleTagValue(value) ?? null
  const all: (string | null)[] = typeof value === 'string' || value === null ? [value] : [...value]
  return mode === 'auto' && all.length === 1 ? (all[0] as string | null) : all
}

/** Writes below the object of a metric, if the metric supports it. */
export function writeToMetric(
  object: ValueObject,
  segments: readonly PathSegment[],
  value: Value,
  mode: TagMode,
): void {
  const [field, tag] = segments
  if (field === 'tags') {
    if (segments.length === 1) {
      if (isObject(value)) object['tags'] = value
    } else if (segments.length === 2 && typeof tag === 'string' && tagOf(value, mode) !== undefined) {
      const tags: ValueObject = { ...(object['tags'] as ValueObject | undefined) }
      setField(tags, tag, value)
      object['tags'] = tags
    }
    return
  }
  if (segments.length !== 1 || typeof field !== 'string') return
  const taken =
    field === 'name' || field === 'namespace'
      ? typeof value === 'string'
      : field === 'kind'
        ? value === 'incremental' || value === 'absolute'
        : field === 'timestamp'
          ? value instanceof Timestamp
          : field === 'interval_ms'
            ? typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 0xffff_ffff
            : false
  if (taken) object[field] = value
}

/** Removes an optional part of a metric. */
export function removeFromMetric(object: ValueObject, segments: readonly PathSegment[]): void {
  const [field, tag] = segments
  if (segments.length === 1 && ['namespace', 'timestamp', 'interval_ms', 'tags'].includes(field as string)) {
    object[field as string] = undefined
  } else if (segments.length === 2 && field === 'tags' && typeof tag === 'string' && isObject(object['tags'])) {
    if (getField(object['tags'], tag) === undefined) return
    const tags: ValueObject = { ...object['tags'] }
    setField(tags, tag, undefined)
    object['tags'] = tags
  }
}

/** Copies the program's changes from the object to the metric. `shown` is the object before the program. */
export function applyToMetric(metric: MetricEvent, shown: ValueObject, object: ValueObject, mode: TagMode): void {
  metric.name = object['name'] as string
  metric.namespace = object['namespace'] as string | undefined
  metric.timestamp = object['timestamp'] as Timestamp | undefined
  metric.kind = object['kind'] as MetricEvent['kind']
  metric.intervalMs = object['interval_ms'] as number | undefined
  if (object['tags'] === shown['tags']) return
  const before = shown['tags'] as ValueObject | undefined
  const after = object['tags'] as ValueObject | undefined
  const tags: MetricTags = new Map()
  for (const name in after) {
    const value = after[name]
    if (value === undefined) continue
    const old = metric.tags?.get(name)
    // An unchanged tag keeps all its values, including those that the mode does not show.
    const kept = before !== undefined && getField(before, name) === value ? old : undefined
    const given = kept === undefined ? tagOf(value, mode) : kept
    if (given !== undefined) tags.set(name, given)
  }
  metric.tags = tags.size === 0 ? undefined : tags
}

/** The tag for a value written by a program; undefined if the mode does not support it. */
function tagOf(value: Value, mode: TagMode): TagValue | undefined {
  if (typeof value === 'string' || value === null) return value
  if (!Array.isArray(value) || mode === 'single') return undefined
  const all = value.filter((item): item is string | null => typeof item === 'string' || item === null)
  return all.length === 1 ? all[0] : all
}
