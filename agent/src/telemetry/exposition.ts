// The agent's metrics in the text format for scrapers. prom-client writes it, and is loaded on the first scrape.

import type { Metric } from 'prom-client'
import { originLabels } from './metric-table.ts'
import type { Labels, MetricSnapshot, Metrics, Sample } from './metrics.ts'

/** Granularity of `/metrics`: a series for each pipeline of a bundle, for each component, or for each container (full detail). */
export const details = ['pipeline', 'component', 'container'] as const
export type Detail = (typeof details)[number]

export interface ExpositionOptions {
  readonly detail?: Detail | undefined
  /** Precedes the name of every metric. */
  readonly prefix?: string
}

/** Writes `/metrics`. Every series gets the constant labels, such as `host` and `pid`. */
export class Exposition {
  readonly #metrics: Metrics
  readonly #constant: Labels
  readonly #detail: Detail
  readonly #prefix: string

  constructor(metrics: Metrics, constant: Labels, { detail, prefix }: ExpositionOptions = {}) {
    this.#metrics = metrics
    this.#constant = constant
    this.#detail = detail ?? 'container'
    this.#prefix = prefix ?? ''
  }

  async render(): Promise<{ readonly contentType: string; readonly text: string }> {
    const { Registry } = await import('prom-client')
    const registry = new Registry()
    registry.setDefaultLabels(this.#constant)
    for (const whole of this.#metrics.snapshot()) {
      const kept = coarser(whole, this.#detail)
      const snapshot = { ...kept, name: `${this.#prefix}${kept.name}` }
      // prom-client only reads the values of a metric, so an object with `get` is sufficient.
      registry.registerMetric({
        name: snapshot.name,
        get: async () => metricObject(snapshot),
      } as unknown as Metric<string>)
    }
    return { contentType: registry.contentType, text: await registry.metrics() }
  }
}

/** Labels for the origin of events, or for a part of a component. */
const fine: ReadonlySet<string> = new Set([...originLabels, 'endpoint'])
/** Matches the ids of components in a bundle, whose first two parts identify the pipeline. */
const inPipeline = /^([^/]+\/[^/]+)\/.*/s
/** Metrics that are ratios, so that a sum would be meaningless. */
const averaged: ReadonlySet<string> = new Set(['utilization'])

/** Removes fine labels, and adds up the series that then have equal labels. With detail `pipeline`, its id replaces those of components. */
function coarser(snapshot: MetricSnapshot, detail: Detail): MetricSnapshot {
  if (detail === 'container') return snapshot
  const groups = new Map<string, Sample[]>()
  const labelsOf = new Map<string, Labels>()
  for (const sample of snapshot.samples) {
    const labels = Object.fromEntries(
      Object.entries(sample.labels).flatMap(([name, value]) => {
        if (fine.has(name)) return []
        if (detail === 'component') return [[name, value]]
        if (name === 'component_type' || name === 'buffer_id' || name === 'output') return []
        return [[name, name === 'component_id' ? value.replace(inPipeline, '$1') : value]]
      }),
    )
    const key = JSON.stringify(Object.entries(labels).sort())
    labelsOf.set(key, labels)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [sample])
    else group.push(sample)
  }
  const samples = [...groups].map(([key, group]) => merged(group, labelsOf.get(key) ?? {}, averaged.has(snapshot.name)))
  return { ...snapshot, samples }
}

function merged(group: readonly Sample[], labels: Labels, largest: boolean): Sample {
  const [first] = group
  if (first !== undefined && 'histogram' in first) {
    const histograms = group.flatMap((sample) => ('histogram' in sample ? [sample.histogram] : []))
    return {
      labels,
      histogram: {
        buckets: first.histogram.buckets.map(({ upperLimit }, index) => ({
          upperLimit,
          count: histograms.reduce((sum, { buckets }) => sum + (buckets[index]?.count ?? 0), 0),
        })),
        sum: histograms.reduce((sum, histogram) => sum + histogram.sum, 0),
        count: histograms.reduce((sum, histogram) => sum + histogram.count, 0),
      },
    }
  }
  const values = group.flatMap((sample) => ('value' in sample ? [sample.value] : []))
  return { labels, value: largest ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0) }
}

function metricObject(snapshot: MetricSnapshot): object {
  const { name, type, help } = snapshot
  const values: object[] = []
  for (const sample of snapshot.samples) {
    const id = sample.labels['component_id']
    const labels = id === undefined ? sample.labels : { ...sample.labels, component_name: id }
    if ('value' in sample) {
      values.push({ value: sample.value, labels })
      continue
    }
    let cumulative = 0
    for (const bucket of sample.histogram.buckets) {
      cumulative += bucket.count
      const le = bucket.upperLimit === Number.POSITIVE_INFINITY ? '+Inf' : bucket.upperLimit
      values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: cumulative })
    }
    values.push({ metricName: `${name}_sum`, labels, value: sample.histogram.sum })
    values.push({ metricName: `${name}_count`, labels, value: sample.histogram.count })
  }
  return { name, help, type, values, aggregator: 'sum' }
}
