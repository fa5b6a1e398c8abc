// The unit of work. Components pass batches; queues, back-pressure, acknowledgement and counters work on batches, never on single
// events. A batch owns one share of its finalizer. Its events may not exist as objects yet: `count` and `bytes` are always cheap,
// but `events` may have to create the objects.

import type { EventStatus, Finalizer } from './finalizer.ts'
import type { LogEvent } from './log.ts'
import type { MetricEvent } from './metric.ts'

export type EventType = 'log' | 'metric'

export interface LogBatch {
  readonly type: 'log'
  /** Number of events. */
  readonly count: number
  /** Sum of the estimated JSON sizes of the events, in bytes. */
  readonly bytes: number
  /** The events as objects. If the batch still consists of bytes, the first access creates them. */
  readonly events: LogEvent[]
  readonly finalizer: Finalizer
  /** True while another holder has the same events. Copy them before changing them (`ownEvents`). */
  readonly shared: boolean
  /** The holders of a shared batch; undefined for a slice of one, whose holders are not counted. */
  holders: Holders | undefined
  /** A part of the batch, events `[from, to)`, under the same finalizer. The caller accounts for the shares. */
  slice(from: number, to: number): LogBatch
  /** The same batch for another holder. Both are marked as shared. The caller retains a share of the finalizer for it. */
  share(): LogBatch
}

export interface MetricBatch {
  readonly type: 'metric'
  readonly count: number
  readonly bytes: number
  readonly events: MetricEvent[]
  readonly finalizer: Finalizer
  readonly shared: boolean
  slice(from: number, to: number): MetricBatch
  share(): MetricBatch
}

export type Batch = LogBatch | MetricBatch

/** A batch of log events that exist as objects. */
export function logBatch(events: LogEvent[], finalizer: Finalizer): LogBatch {
  return new ArrayBatch('log', events, finalizer) as LogBatch
}

export function metricBatch(events: MetricEvent[], finalizer: Finalizer): MetricBatch {
  return new ArrayBatch('metric', events, finalizer) as MetricBatch
}

/** The holders of the same events that have not made their own copies. */
export interface Holders {
  count: number
}

/**
 * The events of a batch for changes in place: copies, if another holder has the same events. Call it once for a batch. A caller
 * that changes fields must call `changed` or `changedIn`.
 */
export function ownEvents(batch: LogBatch): LogEvent[] {
  if (!batch.shared) return batch.events
  const { holders } = batch
  batch.holders = undefined
  // The last holder needs no copies, because all others have made theirs.
  if (holders !== undefined && --holders.count === 0) return batch.events
  const events = batch.events
  const own = new Array<LogEvent>(events.length)
  for (let index = 0; index < events.length; index++) own[index] = (events[index] as LogEvent).measuredCopy()
  return own
}

/** Finalizes all events of a batch. */
export function finalizeBatch(batch: Batch, status: EventStatus): void {
  batch.finalizer.release(1, status)
}

/** Marks two batches as holders of the same events. */
export function shareBetween(holder: Shareable, other: Shareable): void {
  // Slices and copies do not count their holders.
  if (!holder.shared) holder.holders = { count: 1 }
  holder.shared = true
  if (holder.holders !== undefined) holder.holders.count++
  other.shared = true
  other.holders = holder.holders
}

interface Shareable {
  shared: boolean
  holders: Holders | undefined
}

class ArrayBatch<E extends LogEvent | MetricEvent> {
  readonly type: EventType
  readonly events: E[]
  readonly finalizer: Finalizer
  shared = false
  holders: Holders | undefined
  #bytes = -1

  constructor(type: EventType, events: E[], finalizer: Finalizer) {
    this.type = type
    this.events = events
    this.finalizer = finalizer
  }

  get count(): number {
    return this.events.length
  }

  get bytes(): number {
    if (this.#bytes < 0) {
      let bytes = 0
      for (let index = 0; index < this.events.length; index++) bytes += (this.events[index] as E).size
      this.#bytes = bytes
    }
    return this.#bytes
  }

  slice(from: number, to: number): ArrayBatch<E> {
    const part = new ArrayBatch<E>(this.type, this.events.slice(from, to), this.finalizer)
    part.shared = this.shared
    return part
  }

  share(): ArrayBatch<E> {
    const other = new ArrayBatch<E>(this.type, this.events, this.finalizer)
    shareBetween(this, other)
    other.#bytes = this.#bytes
    return other
  }
}
