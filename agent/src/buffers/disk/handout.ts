// Passes events of a disk buffer to the sink in the order of their ids: from memory while the sink keeps up (`hot`), from the files
// while it is behind (`cold`). Memory is bounded in both states.

import { ByteBatch } from '../../bytes/byte-batch.ts'
import { LineRestorer } from '../../bytes/stored-lines.ts'
import { type Batch, logBatch, metricBatch } from '../../event/batch.ts'
import { Finalizer } from '../../event/finalizer.ts'
import type { LogEvent } from '../../event/log.ts'
import type { MetricEvent } from '../../event/metric.ts'
import type { Accounting } from './accounting.ts'
import { Unpacker } from './packing/unpacker.ts'
import type { Progress } from './progress.ts'
import type { ReadRecord, SegmentReader } from './reader.ts'
import { type RecordKind, recordBytes } from './record.ts'
import type { RecordState, Unwritten } from './record-state.ts'
import type { Gaps } from './recovery.ts'
import type { Segment } from './segment.ts'
import type { SegmentStore } from './store.ts'

/** Limit for the estimated size of events in memory while the sink keeps up. */
const hotLimit = 2 * 1024 * 1024

/** Events in memory that the sink has not taken yet. */
interface HotPart {
  readonly batch: Batch
  readonly bytes: number
  readonly state: RecordState
}

export interface HandoutParts {
  readonly store: SegmentStore
  readonly reader: SegmentReader
  readonly progress: Progress
  readonly accounting: Accounting
  readonly gaps: Gaps
  /** Whether byte lines in files become objects. */
  readonly linesAsObjects: boolean
}

export interface HandoutHooks {
  /** The sink has reported a status for a part of a record. */
  onPartEnded(state: RecordState, status: string): void
  /** Packed records that no file contains yet, in order. */
  unwritten(): readonly Unwritten[]
  /** The sink has read all files and gets events from memory again. */
  onCaughtUp(): void
}

export class Handout {
  readonly #store: SegmentStore
  readonly #reader: SegmentReader
  readonly #progress: Progress
  readonly #accounting: Accounting
  readonly #hooks: HandoutHooks
  /** Losses known since the start, by the id that follows them. */
  readonly #gaps: Gaps
  readonly #unpacker = new Unpacker()
  #hot: boolean
  #hotParts: HotPart[] = []
  #hotBytes = 0
  /**
   * The last record whose events the sink gets from memory. When the sink has fallen behind, it reads the files once they
   * contain this record.
   */
  #lastHot: RecordState | undefined
  /** The events of the open record, in case the sink catches up before it is written. */
  #openParts: HotPart[] = []
  /** Batches of the last read record. */
  #readParts: Batch[] = []
  readonly #restorer: LineRestorer
  /** Id of the next event expected from the files. */
  #expectedId: number
  #closed = false

  constructor({ store, reader, progress, accounting, gaps, linesAsObjects }: HandoutParts, hooks: HandoutHooks) {
    this.#store = store
    this.#reader = reader
    this.#progress = progress
    this.#accounting = accounting
    this.#gaps = gaps
    this.#hooks = hooks
    this.#restorer = new LineRestorer(linesAsObjects)
    this.#expectedId = progress.doneId
    this.#hot = reader.atEnd
  }

  get isHot(): boolean {
    return this.#hot
  }

  /** Whether the sink has taken all events. */
  get isEmpty(): boolean {
    return this.#hot && this.#lastHot === undefined && this.#hotParts.length === 0
  }

  // --- From the intake and the write queue ---

  /** Passes events of the open record to the sink, as long as the sink keeps up. */
  handOn(
    events: readonly (LogEvent | MetricEvent)[],
    type: RecordKind,
    shared: boolean,
    bytes: number,
    state: RecordState,
  ): void {
    const finalizer = this.#finalizerOf(state)
    const own =
      type === 'log' ? logBatch(events as LogEvent[], finalizer) : metricBatch(events as MetricEvent[], finalizer)
    this.#handOn({ batch: shared ? own.share() : own, bytes, state })
  }

  /** The same for byte lines. */
  handOnLines(batch: ByteBatch, state: RecordState): void {
    // A few lines of a chunk keep the whole chunk in memory.
    const bytes = Math.max(batch.bytes, batch.lines.heldBytes)
    this.#handOn({ batch: batch.under(this.#finalizerOf(state)), bytes, state })
  }

  #handOn(part: HotPart): void {
    if (!this.#hot || this.#lastHot !== undefined) {
      this.#openParts.push(part)
      return
    }
    this.#handOnPart(part)
  }

  #finalizerOf(state: RecordState): Finalizer {
    return new Finalizer((status) => this.#hooks.onPartEnded(state, status))
  }

  #handOnPart(part: HotPart): void {
    const { state } = part
    state.parts++
    if (!state.handedOn) this.#progress.add(state)
    state.handedOn = true
    this.#hotParts.push(part)
    this.#hotBytes += part.bytes
  }

  /** The open record is complete. */
  recordClosed(): void {
    for (const { batch } of this.#openParts) if (batch instanceof ByteBatch) batch.done()
    this.#openParts = []
  }

  /** A record waits to be written. If the sink has fallen behind, it reads the files from the next record on. */
  recordQueued(state: RecordState): void {
    if (this.#hot && this.#hotBytes > hotLimit) this.#lastHot ??= state
  }

  /** A record was written, or never will be. */
  recordDequeued(state: RecordState): void {
    if (state === this.#lastHot) this.#turnCold(state)
  }

  /** The files contain more records. */
  onWritten(): void {
    if (!this.#hot) this.#reader.onReadable()
  }

  // --- To the sink ---

  take(): Batch | undefined {
    const part = this.#hotParts[0]
    if (part !== undefined) {
      this.#hotParts.shift()
      this.#hotBytes -= part.bytes
      return part.batch
    }
    if (this.#hot || this.#closed) return undefined
    const read = this.#readParts.shift()
    if (read !== undefined) return read
    for (let record = this.#reader.next(); record !== undefined; record = this.#reader.next()) {
      const batch = this.#batchOf(record)
      if (batch !== undefined) return batch
    }
    if (!this.#reader.atEnd) return undefined
    this.#turnHot()
    return this.take()
  }

  #batchOf(record: ReadRecord): Batch | undefined {
    const { header, bytes, segment, end } = record
    const endId = header.firstId + header.events
    if (endId <= this.#expectedId) {
      this.#accounting.bytes -= recordBytes(header)
      return undefined // an earlier run finished it
    }
    this.#countMissing(header.firstId, segment)
    const { kind, events, eventBytes } = header
    const diskBytes = recordBytes(header)
    const state: RecordState = { kind, events, eventBytes, diskBytes, parts: 0, handedOn: true, endId, segment, end }
    this.#expectedId = endId
    this.#progress.add(state)
    const [first, ...others] = this.#unpacked(state, bytes, header.valueBytes)
    state.parts = 1 + others.length
    this.#readParts = others
    return first
  }

  #unpacked(state: RecordState, bytes: Buffer, valueBytes: number): Batch[] {
    const unpacker = this.#unpacker
    if (state.kind === 'metric') {
      return [metricBatch(unpacker.metrics(bytes, valueBytes, state.events), this.#finalizerOf(state))]
    }
    return unpacker.logs(bytes, valueBytes, state.events).map((part) => {
      const finalizer = this.#finalizerOf(state)
      return 'kind' in part ? this.#restorer.batch(part, finalizer) : logBatch(part, finalizer)
    })
  }

  /** Counts the events missing between the expected id and the id just read. */
  #countMissing(firstId: number, segment: Segment): void {
    const missing = firstId - this.#expectedId
    if (missing <= 0) return
    let known = 0
    // The record before a gap may itself be damaged; the next id read is then after both.
    for (const [behind, events] of this.#gaps) {
      if (behind > firstId) continue
      known += events
      this.#gaps.delete(behind)
    }
    this.#expectedId = firstId
    if (missing > known) this.#accounting.missing(missing - known, segment.path)
  }

  /** From now on the sink gets all events after a record from the files. */
  #turnCold({ segment, end, endId }: RecordState): void {
    this.#lastHot = undefined
    this.#hot = false
    const { newest, nextId } = this.#store
    if (segment !== undefined) this.#reader.skipTo(segment, end)
    else if (newest?.end !== undefined) this.#reader.skipTo(newest, newest.end) // it was delivered before it could be written
    this.#expectedId = segment === undefined ? nextId : endId
  }

  /** The sink has read all files: it gets unwritten records, and all later events, from memory. */
  #turnHot(): void {
    const { newest, nextId } = this.#store
    if (newest !== undefined) this.#countMissing(nextId, newest)
    this.#hot = true
    const parts = [...this.#hooks.unwritten().flatMap((item) => this.#partsOf(item)), ...this.#openParts]
    this.#openParts = []
    for (const part of parts) this.#handOnPart(part)
    this.#hooks.onCaughtUp()
  }

  #partsOf({ state, record }: Unwritten): HotPart[] {
    const { values, texts } = record.packed
    return this.#unpacked(state, Buffer.concat([values, texts]), values.length).map((batch) => {
      return { batch, bytes: batch.bytes, state }
    })
  }

  /** Stops reading from the files. */
  stop(): void {
    this.#closed = true
  }

  close(): Promise<void> {
    return this.#reader.close()
  }
}
