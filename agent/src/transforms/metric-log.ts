// Converts a metric event to a log event, for documents and for sinks that accept only logs. The log event has the members of the
// metric's JSON form, the time as `timestamp`, and one tag as the host if configured.

import type { Globals } from '../component.ts'
import { LogEvent } from '../event/log.ts'
import { type MetricEvent, type MetricValue, singleTagValue, type TagValue } from '../event/metric.ts'
import { Timestamp } from '../event/timestamp.ts'
import { compareKeys, float, setField, type Value, type ValueObject } from '../event/value.ts'
import { floatText } from '../formats/json.ts'
import { type Zone, zoneOrUtc } from '../formats/timezone.ts'
import { oneOf, optional, type Parsed, text } from '../schema/options.ts'
import { instantOf } from '../time-field.ts'

export const metricLogOptions = {
  host_tag: optional(
    text('Tag that becomes the host field (`log_schema.host_key`). By default, all tags stay below `tags`.'),
  ),
  timezone: optional(
    text(
      'Time zone for times without one, for metric events with their time in a tag (`log_schema.timestamp_key`). The default is the global `timezone`.',
    ),
  ),
  metric_tag_values: oneOf(['single', 'full'], 'Whether a tag becomes its last value or an array of all its values.', {
    default: 'single',
  }),
}

export interface MetricLogForm {
  readonly hostTag: string | undefined
  readonly hostKey: string
  readonly timestampKey: string
  /** Time zone for times without one. */
  readonly zone: Zone
  readonly tagValues: 'single' | 'full'
}

export function metricLogForm(
  options: Parsed<typeof metricLogOptions>,
  { logSchema, timezone }: Globals,
): MetricLogForm {
  return {
    hostTag: options.host_tag,
    hostKey: logSchema.hostKey,
    timestampKey: logSchema.timestampKey,
    zone: zoneOrUtc(options.timezone ?? timezone),
    tagValues: options.metric_tag_values,
  }
}

export function metricLog(metric: MetricEvent, options: MetricLogForm): LogEvent {
  const fields: ValueObject = { name: metric.name }
  if (metric.namespace !== undefined) fields['namespace'] = metric.namespace
  if (metric.tags !== undefined) {
    const tags: ValueObject = {}
    let any = false
    for (const [name, value] of metric.tags) {
      if (name === options.hostTag) {
        const host = singleTagValue(value)
        if (host !== undefined) setField(fields, options.hostKey, host)
        continue
      }
      const shown = options.tagValues === 'full' ? allValues(value) : singleTagValue(value)
      if (shown === undefined) continue
      setField(tags, name, shown)
      any = true
    }
    if (any) fields['tags'] = tags
  }
  if (metric.intervalMs !== undefined) fields['interval_ms'] = metric.intervalMs
  fields['kind'] = metric.kind
  setField(fields, options.timestampKey, metric.timestamp ?? taggedTime(metric, options) ?? Timestamp.now())
  const [name, value] = valueFields(metric.value)
  fields[name] = value
  return new LogEvent(fields, metric.metadata)
}

/** The time in the tag with the name of the timestamp field. */
function taggedTime(metric: MetricEvent, { timestampKey, zone }: MetricLogForm): Timestamp | undefined {
  const tag = metric.tags?.get(timestampKey)
  return tag === undefined ? undefined : instantOf(singleTagValue(tag), zone)
}

function allValues(value: TagValue): Value {
  return typeof value === 'string' || value === null ? [value] : [...value]
}

function valueFields(value: MetricValue): readonly [string, Value] {
  switch (value.type) {
    case 'counter':
    case 'gauge':
      return [value.type, { value: number(value.value) }]
    case 'set':
      return ['set', { values: [...value.values].sort(compareKeys) }]
    case 'distribution':
      return [
        'distribution',
        {
          samples: value.samples.map((sample) => ({ value: number(sample.value), rate: sample.rate })),
          statistic: value.statistic,
        },
      ]
    case 'histogram':
      return [
        'aggregated_histogram',
        {
          buckets: value.buckets.map((bucket) => ({ upper_limit: limit(bucket.upperLimit), count: bucket.count })),
          count: value.count,
          sum: number(value.sum),
        },
      ]
    case 'summary':
      return [
        'aggregated_summary',
        {
          quantiles: value.quantiles.map((item) => ({ quantile: number(item.quantile), value: number(item.value) })),
          count: value.count,
          sum: number(value.sum),
        },
      ]
  }
}

/** Converts a number to a float; infinity and NaN, which JSON cannot represent, become null. */
function number(value: number): Value {
  return Number.isFinite(value) ? float(value) : null
}

function limit(value: number): Value {
  return Number.isFinite(value) ? float(value) : floatText(value)
}
