// The identity of a series of metrics: type, namespace, name and tags, in any order of the tags.

import type { MetricEvent } from '../event/metric.ts'
import { compareKeys } from '../event/value.ts'

/** A text that is the same for all events of a series, and for no other. */
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
