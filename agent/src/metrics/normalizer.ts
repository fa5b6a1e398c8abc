// Converts the values of metric events to absolute or incremental ones, as a destination requires. It stores one value for each series. It
// never changes an event in place; if a value changes, a new event replaces the old one. Series come from data, so the memory for them has
// a limit in bytes. At the limit, the normalizer forgets series that have long been idle; if there are none, it rejects new series, and
// the known ones continue.

import { MetricEvent, type MetricValue } from '../event/metric.ts'
import { seriesKey } from './series.ts'
import { addValues, subtractValues } from './values.ts'

/** The form of a metric that a destination accepts: running totals, increments, either, or neither. */
export type TargetForm = 'absolute' | 'incremental' | 'as_is' | 'none'

/**
 * The event to send, or the reason why there is none. `kept`: the value is only the base for later differences. `refused`: this kind of
 * value cannot be sent. `full`: the memory limit is reached, or the value itself is too large.
 */
export type Normalised = MetricEvent | 'kept' | 'refused' | 'full'

interface Known {
  value: MetricValue
  /** The time of the last event, in milliseconds. */
  seen: number
  /** Estimated size, including the key. */
  bytes: number
}

/** Maximum size of all series together. */
const maxKnownBytes = 64 << 20
/**
 * Maximum size of one series. Each event copies the value, so a value that grows indefinitely, such as a set with new members, would need
 * more and more time.
 */
export const maxValueBytes = 4 << 20
/** At the memory limit, series that were idle for this time are removed. */
const idleMs = 3_600_000
const minSweepIntervalMs = 10_000
/** Bytes of a series without the characters of its key and without its value. */
const seriesBytes = 200

export class Normalizer {
  readonly #target: (metric: MetricEvent) => TargetForm
  readonly #expireMs: number
  readonly #now: () => number
  readonly #known = new Map<string, Known>()
  readonly #maxBytes: number
  #bytes = 0
  #forgotten = 0
  #nextSweep: number
  #nextSweepForRoom = Number.NEGATIVE_INFINITY

  /**
   * @param target the form that the destination accepts for an event
   * @param expireMs a series that was idle for this time is removed; by default never
   */
  constructor(
    target: (metric: MetricEvent) => TargetForm,
    expireMs = Number.POSITIVE_INFINITY,
    now: () => number = () => performance.now(),
    maxBytes = maxKnownBytes,
  ) {
    this.#target = target
    this.#expireMs = expireMs
    this.#now = now
    this.#maxBytes = maxBytes
    this.#nextSweep = now() + this.#sweepMs
  }

  /** Number of stored series. */
  get size(): number {
    return this.#known.size
  }

  /** Estimated size of all stored series in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Number of idle series that were removed at the memory limit since the last call. */
  takeForgotten(): number {
    const forgotten = this.#forgotten
    this.#forgotten = 0
    return forgotten
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

  #accumulate(metric: MetricEvent, now: number): Normalised {
    const key = seriesKey(metric)
    const known = this.#alive(key, now)
    // If values cannot be added, for example because the limits of a histogram changed, the total starts again.
    const value = (known === undefined ? undefined : addValues(known.value, metric.value)) ?? metric.value
    return this.#remember(key, value, now) ? changed(metric, 'absolute', value) : 'full'
  }

  #difference(metric: MetricEvent, now: number): Normalised {
    if (metric.value.type === 'summary') return 'refused'
    const key = seriesKey(metric)
    const known = this.#alive(key, now)
    const value = known === undefined ? undefined : subtractValues(metric.value, known.value)
    if (!this.#remember(key, metric.value, now)) return 'full'
    if (value === undefined || (value.type === 'distribution' && value.samples.length === 0)) return 'kept'
    return changed(metric, 'incremental', value)
  }

  #alive(key: string, now: number): Known | undefined {
    const known = this.#known.get(key)
    return known !== undefined && now - known.seen < this.#expireMs ? known : undefined
  }

  /** Stores a value. Returns false if the memory limit is reached. */
  #remember(key: string, value: MetricValue, now: number): boolean {
    const bytes = seriesBytes + 2 * key.length + bytesOf(value)
    if (bytes > maxValueBytes) return false
    let known = this.#known.get(key)
    if (this.#bytes + bytes - (known?.bytes ?? 0) > this.#maxBytes) {
      if (known !== undefined) known.seen = now
      this.#makeRoom(now)
      if (this.#bytes + bytes - (known?.bytes ?? 0) > this.#maxBytes) return false
    }
    if (known === undefined) {
      known = { value, seen: now, bytes: 0 }
      this.#known.set(key, known)
    }
    this.#bytes += bytes - known.bytes
    known.value = value
    known.seen = now
    known.bytes = bytes
    return true
  }

  #makeRoom(now: number): void {
    if (now < this.#nextSweepForRoom) return
    this.#nextSweepForRoom = now + minSweepIntervalMs
    const before = this.#known.size
    this.#forget(now, Math.min(idleMs, this.#expireMs))
    this.#forgotten += before - this.#known.size
  }

  get #sweepMs(): number {
    return Math.max(this.#expireMs / 10, 10_000)
  }

  #sweep(now: number): void {
    this.#nextSweep = now + this.#sweepMs
    this.#forget(now, this.#expireMs)
  }

  #forget(now: number, silentForMs: number): void {
    for (const [key, { seen, bytes }] of this.#known) {
      if (now - seen < silentForMs) continue
      this.#known.delete(key)
      this.#bytes -= bytes
    }
  }
}

function bytesOf(value: MetricValue): number {
  switch (value.type) {
    case 'counter':
    case 'gauge':
      return 0
    case 'set': {
      let bytes = 0
      for (const member of value.values) bytes += 40 + 2 * member.length
      return bytes
    }
    case 'distribution':
      return 48 * value.samples.length
    case 'histogram':
      return 48 * value.buckets.length
    case 'summary':
      return 48 * value.quantiles.length
  }
}

function changed(metric: MetricEvent, kind: 'absolute' | 'incremental', value: MetricValue): MetricEvent {
  return new MetricEvent({
    name: metric.name,
    namespace: metric.namespace,
    timestamp: metric.timestamp,
    tags: metric.tags,
    metadata: metric.metadata,
    // A total has no interval.
    intervalMs: kind === 'absolute' ? undefined : metric.intervalMs,
    kind,
    value,
  })
}
