// The identity of a metric series: type, namespace, name and tags, regardless of the order of the tags.

import type { MetricEvent } from '../event/metric.ts'
import { compareKeys } from '../event/value.ts'

/** A text that identifies the series of an event. */
export function seriesKey(metric: MetricEvent): string {
  const { value, tags } = metric
  let key = `${value.type === 'distribution' ? value.statistic : ''}${value.type} ${JSON.stringify(metric.name)}`
  if (metric.namespace !== undefined) key += ` ${JSON.stringify(metric.namespace)}`
  if (tags === undefined || tags.size === 0) return key
  if (tags.size === 1) {
    for (const [name, tag] of tags) key += `,${JSON.stringify(name)}:${JSON.stringify(tag)}`
    return key
  }
  for (const name of [...tags.keys()].sort(compareKeys)) {
    key += `,${JSON.stringify(name)}:${JSON.stringify(tags.get(name))}`
  }
  return key
}
