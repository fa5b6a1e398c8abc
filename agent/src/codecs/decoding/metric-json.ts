// Parses the JSON form of a metric event (codec `native_json`, recorded cases, unit tests of a configuration).

import { MetricEvent, type MetricKind, type MetricTags, type MetricValue, type TagValue } from '../../event/metric.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { Float, isObject, type Value, type ValueObject } from '../../event/value.ts'
import { parseRfc3339 } from '../../formats/datetime.ts'

/** The metric, or a message about the problem. */
export function metricFromJson(form: Value | undefined): MetricEvent | string {
  if (!isObject(form)) return 'a metric must be an object'
  const name = form['name']
  if (typeof name !== 'string') return '`name` of a metric must be a string'
  const kind = form['kind']
  if (kind !== 'incremental' && kind !== 'absolute') return '`kind` of a metric must be `incremental` or `absolute`'
  const namespace = form['namespace'] ?? undefined
  if (namespace !== undefined && typeof namespace !== 'string') return '`namespace` of a metric must be a string'
  let timestamp: Timestamp | undefined
  if (typeof form['timestamp'] === 'string') {
    timestamp = parseRfc3339(form['timestamp'])
    if (timestamp === undefined) return '`timestamp` of a metric must be an RFC 3339 date'
  } else if (form['timestamp'] instanceof Timestamp) {
    timestamp = form['timestamp']
  }
  const value = valueFrom(form)
  if (typeof value === 'string') return value
  const tags = tagsFrom(form['tags'] ?? undefined)
  if (typeof tags === 'string') return tags
  return new MetricEvent({
    name,
    namespace,
    kind: kind as MetricKind,
    value,
    timestamp,
    tags,
    intervalMs: number(form['interval_ms'] ?? undefined),
  })
}

function tagsFrom(form: Value | undefined): MetricTags | undefined | string {
  if (form === undefined) return undefined
  if (!isObject(form)) return '`tags` of a metric must be an object'
  const tags: MetricTags = new Map()
  for (const [name, value] of Object.entries(form)) {
    if (value === undefined) continue
    const items = Array.isArray(value) ? value : [value]
    if (!items.every((item) => item === null || typeof item === 'string')) {
      return '`tags` of a metric must be strings, nulls or arrays of these'
    }
    tags.set(name, value as TagValue)
  }
  return tags.size === 0 ? undefined : tags
}

function valueFrom(form: ValueObject): MetricValue | string {
  for (const type of ['counter', 'gauge'] as const) {
    const detail = form[type]
    if (detail === undefined) continue
    const value = isObject(detail) ? number(detail['value']) : undefined
    return value === undefined ? `\`${type}.value\` must be a number` : { type, value }
  }
  const set = form['set']
  if (set !== undefined) {
    const values = isObject(set) ? set['values'] : undefined
    if (!Array.isArray(values) || !values.every((item) => typeof item === 'string')) {
      return '`set.values` must be an array of strings'
    }
    return { type: 'set', values: values as string[] }
  }
  const distribution = form['distribution']
  if (distribution !== undefined) {
    const pairs = isObject(distribution) ? pairsFrom(distribution['samples'], ['value'], 'rate') : undefined
    const statistic = isObject(distribution) ? distribution['statistic'] : undefined
    if (pairs === undefined || (statistic !== 'histogram' && statistic !== 'summary')) {
      return '`distribution` must have `samples` with `value` and `rate`, and a `statistic`'
    }
    return { type: 'distribution', samples: pairs.map(([value, rate]) => ({ value, rate })), statistic }
  }
  const histogram = form['aggregated_histogram'] ?? form['histogram']
  if (histogram !== undefined) {
    const pairs = isObject(histogram) ? pairsFrom(histogram['buckets'], ['upper_limit'], 'count') : undefined
    const totals = totalsFrom(histogram)
    if (pairs === undefined || totals === undefined) {
      return '`aggregated_histogram` must have `buckets` with `upper_limit` and `count`, a `count` and a `sum`'
    }
    return { type: 'histogram', buckets: pairs.map(([upperLimit, count]) => ({ upperLimit, count })), ...totals }
  }
  const summary = form['aggregated_summary'] ?? form['summary']
  if (summary !== undefined) {
    const pairs = isObject(summary) ? pairsFrom(summary['quantiles'], ['quantile', 'upper_limit'], 'value') : undefined
    const totals = totalsFrom(summary)
    if (pairs === undefined || totals === undefined) {
      return '`aggregated_summary` must have `quantiles` with `quantile` and `value`, a `count` and a `sum`'
    }
    return { type: 'summary', quantiles: pairs.map(([quantile, value]) => ({ quantile, value })), ...totals }
  }
  return 'a metric must have one of `counter`, `gauge`, `set`, `distribution`, `aggregated_histogram`, `aggregated_summary`'
}

/** Reads pairs of numbers from an array of objects. The first number may have one of several names. */
function pairsFrom(items: Value | undefined, first: readonly string[], second: string): [number, number][] | undefined {
  if (!Array.isArray(items)) return undefined
  const pairs: [number, number][] = []
  for (const item of items) {
    if (!isObject(item)) return undefined
    const name = first.find((candidate) => item[candidate] !== undefined)
    const left = name === undefined ? undefined : number(item[name])
    const right = number(item[second])
    if (left === undefined || right === undefined) return undefined
    pairs.push([left, right])
  }
  return pairs
}

function totalsFrom(form: Value): { count: number; sum: number } | undefined {
  if (!isObject(form)) return undefined
  const count = number(form['count'])
  const sum = number(form['sum'])
  return count === undefined || sum === undefined ? undefined : { count, sum }
}

const infinities: Readonly<Record<string, number>> = {
  inf: Number.POSITIVE_INFINITY,
  '+inf': Number.POSITIVE_INFINITY,
  '-inf': Number.NEGATIVE_INFINITY,
  NaN: Number.NaN,
}

function number(value: Value | undefined): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Float) return value.value
  return typeof value === 'string' ? infinities[value] : undefined
}
