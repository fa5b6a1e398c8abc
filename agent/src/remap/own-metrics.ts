// The agent's own metrics, as selected by lookup functions.

import { float, isObject, type Value, type ValueObject } from '../event/value.ts'
import { compileBounded } from '../formats/regex-linear.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Runtime } from './function.ts'
import { kinds } from './kind.ts'

/** How long a snapshot of the metrics is used. */
const keptMs = 1000

/** Reads the agent's metrics as values, at intervals. */
export function metricReader(metrics: Metrics | undefined): Runtime['metrics'] {
  let values: readonly Value[] = []
  let until = Number.NEGATIVE_INFINITY
  return () => {
    const now = performance.now()
    if (metrics === undefined || now < until) return values
    until = now + keptMs
    values = metrics.snapshot().flatMap(({ name, type, samples }) =>
      samples.map((sample): ValueObject => {
        const tags = Object.fromEntries(Object.entries(sample.labels).map(([label, value]) => [label, [value]]))
        const head = { name, tags, kind: 'absolute' }
        if (!('histogram' in sample)) return { ...head, type, value: float(sample.value) }
        const { buckets, count, sum } = sample.histogram
        return {
          ...head,
          type: 'histogram',
          value: null,
          buckets: buckets.map(({ upperLimit, count }): ValueObject => ({ upper_limit: float(upperLimit), count })),
          count,
          sum: float(sum),
        }
      }),
    )
    return values
  }
}

/** The kind of a metric. Tags are arrays of their values. */
export const metricKind = kinds.objectWith(
  {
    name: kinds.string,
    tags: kinds.object,
    type: kinds.string,
    kind: kinds.string,
    value: kinds.float.or(kinds.null),
  },
  kinds.any,
)

export function matchingMetrics(runtime: Runtime, name: string, tags: ValueObject): Value[] {
  return runtime.metrics().filter((metric) => {
    if (!isObject(metric) || metric['name'] !== name) return false
    const mine = isObject(metric['tags']) ? metric['tags'] : {}
    for (const key of Object.keys(tags)) {
      const wanted = tags[key]
      if (wanted !== undefined && !matches(String(wanted), mine[key])) return false
    }
    return true
  })
}

function matches(wanted: string, values: Value | undefined): boolean {
  const value = Array.isArray(values) ? values[0] : undefined
  if (typeof value !== 'string') return false
  if (!wanted.includes('*')) return value === wanted
  const parts = wanted.split('*').map((part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
  return compileBounded(`^${parts.join('.*')}$`, 's').test(value)
}
