// Packs accepted events into records. A record holds the events of one turn of the event loop, up to 256 KiB of one kind.

import { ByteBatch } from '../../bytes/byte-batch.ts'
import type { Batch } from '../../event/batch.ts'
import type { Finalizer } from '../../event/finalizer.ts'
import type { LogEvent } from '../../event/log.ts'
import type { MetricEvent } from '../../event/metric.ts'
import type { Handout } from './handout.ts'
import { Packer } from './packing/packer.ts'
import { type RecordKind, recordBytes } from './record.ts'
import { newRecordState, type RecordState, type Unwritten } from './record-state.ts'

/** Approximate size of a record: it is closed at this size, or at the end of the turn. */
export const recordTarget = 256 * 1024

export interface IntakeHooks {
  /** A record is closed and must be written. */
  onRecord(item: Unwritten): void
  /** A record is larger than a segment, so no file can hold it. */
  onOversized(state: RecordState, origins: readonly Finalizer[]): void
}

export class Intake {
  readonly #handout: Handout
  readonly #segmentLimit: number
  readonly #hooks: IntakeHooks
  readonly #packer = new Packer()
  /** The record being packed, and the finalizers of its events. */
  #open: RecordState | undefined
  #origins: Finalizer[] = []
  #flushing: NodeJS.Immediate | undefined

  constructor(handout: Handout, segmentLimit: number, hooks: IntakeHooks) {
    this.#handout = handout
    this.#segmentLimit = segmentLimit
    this.#hooks = hooks
  }

  /** Whether a record is being packed. */
  get isOpen(): boolean {
    return this.#open !== undefined
  }

  /** Packed bytes of the open record. */
  get bytes(): number {
    return this.#open === undefined ? 0 : this.#packer.size
  }

  /** Takes a batch with its share of the finalizer. */
  take(batch: Batch): void {
    if (this.#open !== undefined && this.#open.kind !== batch.type) this.#flush()
    if (batch instanceof ByteBatch && batch.isLines) this.#takeLines(batch)
    else this.#takeEvents(batch)
    if (this.#open !== undefined) this.#flushing ??= setImmediate(this.#flushSoon)
  }

  /** Byte lines come from one chunk, so they are packed at once. */
  #takeLines(batch: ByteBatch): void {
    this.#open ??= this.#begin('log')
    const state = this.#open
    this.#packer.lines(batch)
    state.events += batch.count
    state.eventBytes += batch.bytes
    this.#origins.push(batch.finalizer)
    this.#handout.handOnLines(batch, state)
    if (this.#packer.size >= recordTarget) this.#flush()
  }

  #takeEvents(batch: Batch): void {
    const { events, type } = batch
    let shares = 1
    for (let from = 0; from < events.length; ) {
      this.#open ??= this.#begin(type)
      const state = this.#open
      const to = this.#pack(events, from)
      const whole = from === 0 && to === events.length
      const part = whole ? batch : batch.slice(from, to)
      const { bytes } = part
      state.events += to - from
      state.eventBytes += bytes
      if (shares === 0) batch.finalizer.retain(1)
      shares = 0
      this.#origins.push(batch.finalizer)
      this.#handout.handOn(whole ? events : events.slice(from, to), type, batch.shared, bytes, state)
      if (this.#packer.size >= recordTarget) this.#flush()
      from = to
    }
  }

  #begin(kind: RecordKind): RecordState {
    this.#packer.begin()
    return newRecordState(kind)
  }

  /** Packs events from `from` on until the record is full; returns the index where it stopped. */
  #pack(events: readonly (LogEvent | MetricEvent)[], from: number): number {
    const packer = this.#packer
    let to = from
    if (this.#open?.kind === 'log') {
      do packer.log(events[to++] as LogEvent)
      while (to < events.length && packer.size < recordTarget)
    } else {
      do packer.metric(events[to++] as MetricEvent)
      while (to < events.length && packer.size < recordTarget)
    }
    return to
  }

  readonly #flushSoon = (): void => {
    this.#flushing = undefined
    this.#flush()
  }

  /** Closes the open record without waiting for the end of the turn. */
  flush(): void {
    clearImmediate(this.#flushing)
    this.#flushSoon()
  }

  /** Closes the open record for writing. */
  #flush(): void {
    const state = this.#open
    if (state === undefined) return
    this.#open = undefined
    this.#handout.recordClosed()
    const packed = this.#packer.finish()
    const origins = this.#origins
    this.#origins = []
    const { kind, events, eventBytes } = state
    state.diskBytes = recordBytes({ valueBytes: packed.values.length, textBytes: packed.texts.length })
    if (state.diskBytes > this.#segmentLimit) {
      this.#hooks.onOversized(state, origins)
      return
    }
    const since = performance.now()
    this.#hooks.onRecord({ state, record: { kind, events, eventBytes, packed }, origins, since })
  }
}
