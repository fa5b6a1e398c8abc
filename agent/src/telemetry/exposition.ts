// The agent's metrics in the text format that scrapers read. prom-client writes it; it is loaded with the first scrape.

import type { Metric } from 'prom-client'
import type { Labels, MetricSnapshot, Metrics } from './metrics.ts'

/** Writes `/metrics`; every series gets the constant labels, such as `host` and `pid`. */
export class Exposition {
  readonly #metrics: Metrics
  readonly #constant: Labels

  constructor(metrics: Metrics, constant: Labels) {
    this.#metrics = metrics
    this.#constant = constant
  }

  async render(): Promise<{ readonly contentType: string; readonly text: string }> {
    const { Registry } = await import('prom-client')
    const registry = new Registry()
    registry.setDefaultLabels(this.#constant)
    for (const snapshot of this.#metrics.snapshot()) {
      // prom-client asks a metric for its values and nothing else: ours live in our own store.
      registry.registerMetric({
        name: snapshot.name,
        get: async () => metricObject(snapshot),
      } as unknown as Metric<string>)
    }
    return { contentType: registry.contentType, text: await registry.metrics() }
  }
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
