// Makes the values of metric events absolute or incremental, as a destination requires. It keeps one value for each series. It never
// changes an event in place: another event replaces one whose value changes. Series come from data, so the memory for them is bounded
// in bytes. At the bound, series that have long been silent are forgotten; if there are none, new series are refused, and the known
// ones continue.

import { MetricEvent, type MetricValue } from '../event/metric.ts'
import { seriesKey } from './series.ts'
import { addValues, subtractValues } from './values.ts'

/** The form of a metric that a destination takes: running totals, increments, either, or none at all. */
export type TargetForm = 'absolute' | 'incremental' | 'as_is' | 'none'

/**
 * The event to send; `kept`: the value only is what later ones are compared with; `refused`: no such value can be sent; `full`: too
 * much is remembered to take in this one, or it is too large itself.
 */
export type Normalised = MetricEvent | 'kept' | 'refused' | 'full'

interface Known {
  value: MetricValue
  /** When the series was last seen, in milliseconds. */
  seen: number
  /** Estimated, with the key. */
  bytes: number
}

/** Limit for all remembered series together. */
const maxKnownBytes = 64 << 20
/**
 * Of one series. Each of its events creates a new value, so a value that grows, such as a set with ever new members, would cost time
 * for all its members.
 */
export const maxValueBytes = 4 << 20
/** A series that was silent for this long makes room for another. */
const silentMs = 3_600_000
const sweepForRoomMs = 10_000
/** Bytes of a series beside the characters of its key and its value. */
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
   * @param target what the destination takes of an event
   * @param expireMs a series that was silent for this long is forgotten; never if omitted
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

  /** Series that are remembered. */
  get size(): number {
    return this.#known.size
  }

  /** Estimated bytes of what is remembered. */
  get bytes(): number {
    return this.#bytes
  }

  /** Silent series that made room for others since this was last read. */
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
    // A value that cannot be added to, such as a histogram with changed limits, starts again.
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

  /** False if there is no room. */
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
    this.#nextSweepForRoom = now + sweepForRoomMs
    const before = this.#known.size
    this.#forget(now, Math.min(silentMs, this.#expireMs))
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
    // A total is of no interval.
    intervalMs: kind === 'absolute' ? undefined : metric.intervalMs,
    kind,
    value,
  })
}
