// Makes the values of metric events absolute or incremental, as a destination wants them. What is remembered of a series is one
// value. An event is never changed in place: where its value changes, another event takes its place.

import { MetricEvent, type MetricValue } from '../event/metric.ts'
import { seriesKey } from './series.ts'
import { addValues, subtractValues } from './values.ts'

/** What a destination takes of a metric: running totals, increments, either, or none at all. */
export type Target = 'absolute' | 'incremental' | 'as_is' | 'none'

/**
 * The event to send; `kept`: the value only is what later ones are compared with; `refused`: no such value can be sent.
 */
export type Normalised = MetricEvent | 'kept' | 'refused'

interface Known {
  value: MetricValue
  /** When the series was last seen, in milliseconds. */
  seen: number
}

export class Normalizer {
  readonly #target: (metric: MetricEvent) => Target
  readonly #expireMs: number
  readonly #now: () => number
  readonly #known = new Map<string, Known>()
  #nextSweep: number

  /**
   * @param target what the destination takes of an event
   * @param expireMs a series that was not seen for so long is forgotten; left out: never
   */
  constructor(
    target: (metric: MetricEvent) => Target,
    expireMs = Number.POSITIVE_INFINITY,
    now: () => number = () => performance.now(),
  ) {
    this.#target = target
    this.#expireMs = expireMs
    this.#now = now
    this.#nextSweep = now() + this.#sweepMs
  }

  /** Series that are remembered. */
  get size(): number {
    return this.#known.size
  }

  normalize(metric: MetricEvent): Normalised {
    const now = this.#now()
    if (now >= this.#nextSweep) this.#sweep(now)
    switch (this.#target(metric)) {
      case 'as_is':
        return metric
      case 'none':
        return 'refused'
      case 'absolute':
        return metric.kind === 'absolute' ? metric : this.#accumulate(metric, now)
      case 'incremental':
        return metric.kind === 'incremental' ? metric : this.#difference(metric, now)
    }
  }

  #accumulate(metric: MetricEvent, now: number): MetricEvent {
    const key = seriesKey(metric)
    const known = this.#alive(key, now)
    // What cannot be added to, such as a histogram whose limits changed, begins again.
    const value = (known === undefined ? undefined : addValues(known.value, metric.value)) ?? metric.value
    this.#remember(key, known, value, now)
    return changed(metric, 'absolute', value)
  }

  #difference(metric: MetricEvent, now: number): Normalised {
    if (metric.value.type === 'summary') return 'refused'
    const key = seriesKey(metric)
    const known = this.#alive(key, now)
    const value = known === undefined ? undefined : subtractValues(metric.value, known.value)
    this.#remember(key, known, metric.value, now)
    if (value === undefined || (value.type === 'distribution' && value.samples.length === 0)) return 'kept'
    return changed(metric, 'incremental', value)
  }

  #alive(key: string, now: number): Known | undefined {
    const known = this.#known.get(key)
    return known !== undefined && now - known.seen < this.#expireMs ? known : undefined
  }

  #remember(key: string, known: Known | undefined, value: MetricValue, now: number): void {
    if (known === undefined) {
      this.#known.set(key, { value, seen: now })
    } else {
      known.value = value
      known.seen = now
    }
  }

  get #sweepMs(): number {
    return Math.max(this.#expireMs / 10, 10_000)
  }

  #sweep(now: number): void {
    this.#nextSweep = now + this.#sweepMs
    for (const [key, { seen }] of this.#known) {
      if (now - seen >= this.#expireMs) this.#known.delete(key)
    }
  }
}

function changed(metric: MetricEvent, kind: 'absolute' | 'incremental', value: MetricValue): MetricEvent {
  return new MetricEvent({
    name: metric.name,
    namespace: metric.namespace,
    timestamp: metric.timestamp,
    tags: metric.tags,
    metadata: metric.metadata,
    // A total is of no interval.
    intervalMs: kind === 'absolute' ? undefined : metric.intervalMs,
    kind,
    value,
  })
}
