// A sink's buffer on disk. Events are packed as they come and written by another thread, some records at once; their source hears
// that they are safe when a sync has covered them, every 500 ms. An event stays until the destination has answered for it, and is
// read again after a crash.
//
// As long as the sink keeps up it gets the events from memory, and the files are only written (`hot`). When it falls behind, it
// gets them from the files until it has caught up (`cold`). Memory is bounded in both.

import { join } from 'node:path'
import { makeDirectory } from '../data-dir.ts'
import { PenstockError } from '../errors.ts'
import { type Batch, finalizeBatch, logBatch, metricBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Labels, Metrics } from '../telemetry/metrics.ts'
import type { RepetitionLimit } from '../telemetry/repetition-limit.ts'
import { BufferCounters, type DiskBufferOptions, type SinkBuffer } from './buffer.ts'
import { type DiskFiles, diskFiles } from './disk/files.ts'
import { isBefore, type Ledger, type LedgerState, type Position } from './disk/ledger.ts'
import { lockFolder, lockName } from './disk/lock.ts'
import { Packer } from './disk/packing/packer.ts'
import { recycle } from './disk/packing/record-memory.ts'
import { Unpacker } from './disk/packing/unpacker.ts'
import { type Damage, type ReadRecord, SegmentReader } from './disk/reader.ts'
import { headerBytes, type RecordKind, recordBytes } from './disk/record.ts'
import { type Gaps, recover } from './disk/recovery.ts'
import type { Segment } from './disk/segment.ts'
import { defaultSegmentLimit } from './disk/segment.ts'
import { type NewRecord, type Place, SegmentStore } from './disk/store.ts'

/** Packed bytes of a record, about: it is closed when it has so many, or at the end of the turn. */
const recordTarget = 256 * 1024
/** Packed bytes that are worth a write of their own; less is collected for a moment. Each write costs two changes of threads. */
const writeTarget = 1024 * 1024
const collectMs = 10
/** Packed bytes that may wait to be written before their writers wait too. */
const queueLimit = 3 * 1024 * 1024
/** Estimated size of the events that wait for the sink in memory while it keeps up. */
const hotLimit = 2 * 1024 * 1024
/** What was taken in may be unsynced for so long, unless the disk is slower; then no more is taken in. */
const syncMs = 500
/** What comes within a moment is synced together, also after a long time of nothing. */
const minSyncMs = 20
/** Attempts of a failing sync, each after writing its data again, before its sources get the error. */
const syncAttempts = 3
/** Written bytes after which a sync does not wait for its time, and after which writers wait for it. */
const syncEarly = 32 * 1024 * 1024
const unsyncedLimit = 128 * 1024 * 1024
const ledgerMs = 50
const retryMs = 1000

export interface DiskBufferContext {
  readonly folder: string
  readonly logger: Logger
  readonly limit: RepetitionLimit
  readonly metrics: Metrics
  readonly component: Labels
  /** From here on what the sink could not deliver stays in the buffer for the next start. */
  readonly abandoning: AbortSignal
  /** Called with the number of events dropped because the buffer is full. */
  readonly onDrop?: (events: number) => void
  /** Stand-ins for the real file operations, and smaller segments, in tests. */
  readonly files?: DiskFiles
  readonly segmentLimit?: number
}

/** A record from the moment in which its first event came, or in which it was read, until all is done. */
interface RecordState {
  readonly kind: RecordKind
  events: number
  eventBytes: number
  diskBytes: number
  /** Batches in the sink's hands, and one share while the record may get more. */
  parts: number
  /** The sink has got some of it: the record is among those that are not acknowledged. */
  handedOn: boolean
  /** Id of the event behind its last, and where it ends: known when it is written. */
  endId: number
  segment: Segment | undefined
  end: number
}

/** Events in memory that the sink has not taken. */
interface HotPart {
  readonly batch: Batch
  readonly bytes: number
  readonly state: RecordState
}

/** A record that is packed and not written yet. */
interface Unwritten {
  readonly state: RecordState
  readonly record: NewRecord
  readonly origins: Finalizer[]
  /** When it was packed, on the clock of `performance`. */
  readonly since: number
}

interface Waiting {
  readonly batch: Batch
  readonly admitted: () => void
}

export class DiskBuffer implements SinkBuffer {
  readonly durable = true
  onReadable: (() => void) | undefined
  limit: { readonly bytes: number }
  readonly #context: DiskBufferContext
  readonly #counters: BufferCounters
  readonly #lock: Disposable
  readonly #ledger: Ledger
  readonly #store: SegmentStore
  readonly #reader: SegmentReader
  readonly #gaps: Gaps
  readonly #packer = new Packer()
  readonly #unpacker = new Unpacker()
  #whenFull: 'block' | 'drop_newest'
  #events: number
  #bytes: number
  /** The record that is being packed, and the finalizers of its events. */
  #open: RecordState | undefined
  #origins: Finalizer[] = []
  /** What the open record consists of; for the case that the sink catches up before it is written. */
  #openParts: HotPart[] = []
  #flushing: NodeJS.Immediate | undefined
  /** In their order; the first may be on its way to the disk. */
  #unwritten: Unwritten[] = []
  #unwrittenBytes = 0
  #writing: Promise<void> | undefined
  #collecting: NodeJS.Immediate | undefined
  /** There was no room for the first of them, or the disk did not take it. */
  #stuck = false
  #retry: NodeJS.Timeout | undefined
  readonly #waiting: Waiting[] = []
  #admitting = false
  #hot = true
  #hotParts: HotPart[] = []
  #hotBytes = 0
  /** The last record of which the sink gets the events from memory: it fell behind, and reads the files when this is in them. */
  #lastHot: RecordState | undefined
  /** Records in the order of their ids that are not all done; the first is the oldest. */
  #unacknowledged: RecordState[] = []
  /** Id of the next event that reading should bring. */
  #expectedId: number
  /** Everything before is done. */
  #doneId: number
  #done: Position
  /** What the ledger calls safe. */
  #synced: Position
  #syncedId: number
  /** The end of what the last sync was for, that went well or was not tried again. */
  #covered: Position
  #unsynced: Finalizer[] = []
  #unsyncedBytes = 0
  #syncTimer: NodeJS.Timeout | undefined
  #syncing: Promise<void> | undefined
  #syncBegan = Number.NEGATIVE_INFINITY
  /** When the first of what is written and no sync covers yet was packed, and of what the sync under way covers. */
  #unsyncedSince = Number.POSITIVE_INFINITY
  #syncingSince = Number.POSITIVE_INFINITY
  /** How long syncs take of late, at most. */
  #syncTook = 0
  #failedSyncs = 0
  /** Since a sync has failed none has gone well: the kernel may take for written what was written before or meanwhile. */
  #doubtful = false
  /** The end of what no sync makes safe any more, until it is done. */
  #unsafeUntil: Position | undefined
  #releasing: Promise<void> | undefined
  #ledgerTimer: NodeJS.Timeout | undefined
  #closing: Promise<void> | undefined
  #closed = false

  /** Opens the folder, which is made if there is none, and finds out what is in it. */
  static open(options: DiskBufferOptions, context: DiskBufferContext): DiskBuffer {
    const { folder, files } = context
    try {
      makeDirectory(folder, 0o700, files)
      const lock = lockFolder(join(folder, lockName))
      try {
        return new DiskBuffer(options, context, lock)
      } catch (error) {
        lock[Symbol.dispose]()
        throw error
      }
    } catch (error) {
      if (error instanceof PenstockError) throw error
      const reason = error instanceof Error ? error.message : String(error)
      const message = `The disk buffer in ${folder} cannot be opened: ${reason}. The folder must be on a disk that the agent can write to.`
      throw new PenstockError('PEN_IO', message, { cause: error })
    }
  }

  private constructor(options: DiskBufferOptions, context: DiskBufferContext, lock: Disposable) {
    this.#context = context
    this.#counters = new BufferCounters(context.metrics, context.component)
    this.#whenFull = options.whenFull
    this.limit = { bytes: options.maxSize }
    this.#lock = lock
    const { folder, files = diskFiles, segmentLimit = defaultSegmentLimit } = context
    const found = recover(files, folder)
    this.#ledger = found.ledger
    this.#gaps = found.gaps
    const { segments, nextId, nextSequence, read, synced } = found
    this.#store = new SegmentStore({
      files,
      folder,
      segments,
      nextId,
      nextSequence,
      synced,
      maxSize: options.maxSize,
      segmentLimit,
    })
    this.#reader = new SegmentReader(this.#store, read, (damage) => this.#damaged(damage))
    this.#reader.onReadable = () => this.onReadable?.()
    let lost = 0
    for (const finding of found.findings) {
      lost += finding.lost
      this.#reportFinding(finding.code, finding.lost, finding.path)
    }
    this.#counters.lost(lost)
    let gapped = 0
    for (const gap of found.gaps.values()) gapped += gap
    this.#doneId = found.readId
    this.#expectedId = found.readId
    this.#done = { ...read }
    this.#synced = synced
    this.#syncedId = found.syncedId
    this.#covered = synced
    if (found.unsafe) this.#noteUnsafe(this.#end)
    this.#events = nextId - found.readId - gapped
    this.#bytes = segments.reduce((sum, segment) => sum + (segment.end ?? segment.size), 0) - read.offset
    this.#hot = this.#reader.atEnd
    this.#writeLedger()
    if (this.#store.hasUnsynced) {
      this.#unsyncedSince = performance.now()
      this.#syncSoon()
    }
    if (this.#events > 0) {
      const fields = { events: this.#events, bytes: this.#bytes, folder }
      context.logger.info(fields, 'The disk buffer holds events of an earlier run.')
    }
  }

  get events(): number {
    return this.#events
  }

  get bytes(): number {
    return this.#bytes
  }

  get empty(): boolean {
    return this.#hot && this.#lastHot === undefined && this.#hotParts.length === 0 && this.#waiting.length === 0
  }

  /** Other limits for what comes; what is inside stays. */
  reconfigure(options: DiskBufferOptions): void {
    this.#whenFull = options.whenFull
    this.limit = { bytes: options.maxSize }
    this.#store.maxSize = options.maxSize
    this.#writeOn()
    this.#admitWaiting()
  }

  write(batch: Batch): Promise<void> | undefined {
    if (batch.count === 0 || this.#closed) {
      finalizeBatch(batch, batch.count === 0 ? 'dropped' : 'errored')
      return undefined
    }
    const admission = this.#waiting.length === 0 ? this.#admissionOf(batch) : 'wait'
    if (admission === 'wait') return new Promise((admitted) => this.#waiting.push({ batch, admitted }))
    this.#admit(batch, admission)
    return undefined
  }

  #admissionOf(batch: Batch): 'enter' | 'drop' | 'wait' {
    if (this.#hasRoom(batch)) return 'enter'
    return this.#whenFull === 'drop_newest' && !this.#isBusy ? 'drop' : 'wait'
  }

  #admit(batch: Batch, admission: 'enter' | 'drop'): void {
    if (admission === 'enter') {
      this.#enter(batch)
      return
    }
    this.#counters.discarded(batch.count, batch.bytes)
    this.#context.onDrop?.(batch.count)
    finalizeBatch(batch, 'dropped')
  }

  #hasRoom(batch: Batch): boolean {
    if (this.#stuck || this.#isBusy) return false
    if (this.#whenFull === 'block' && (this.#unsyncedBytes > unsyncedLimit || this.#isLate())) return false
    const packed = this.#unwrittenBytes + (this.#open === undefined ? 0 : this.#packer.size)
    return this.#store.fits(packed + headerBytes + Math.min(batch.bytes + batch.count * 8, 2 * recordTarget))
  }

  /** Whether the disk is still at what came before: that there is no room is a matter of a moment. */
  get #isBusy(): boolean {
    return !this.#stuck && this.#unwrittenBytes >= queueLimit
  }

  /** Whether what a loss of power would cost is as old as it may be: then no more is added to it. */
  #isLate(): boolean {
    const unwrittenSince = this.#unwritten[0]?.since ?? Number.POSITIVE_INFINITY
    return performance.now() - Math.min(this.#syncingSince, this.#unsyncedSince, unwrittenSince) >= syncMs
  }

  #admitWaiting(): void {
    // Entering calls the reader, which may take, which would admit: once is enough.
    if (this.#admitting || this.#closed) return
    this.#admitting = true
    for (;;) {
      const first = this.#waiting[0]
      if (first === undefined) break
      const admission = this.#admissionOf(first.batch)
      if (admission === 'wait') break
      this.#waiting.shift()
      this.#admit(first.batch, admission)
      first.admitted()
    }
    this.#admitting = false
  }

  // --- Packing and writing ---

  #enter(batch: Batch): void {
    const { bytes: size, type } = batch
    const { events } = batch
    if (this.#open !== undefined && this.#open.kind !== type) this.#flush()
    this.#counters.received(batch.count, size)
    this.#events += batch.count
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
      this.#handOn(whole ? events : events.slice(from, to), type, batch.shared, bytes, state)
      if (this.#packer.size >= recordTarget) this.#flush()
      from = to
    }
    if (this.#open !== undefined) this.#flushing ??= setImmediate(this.#flushSoon)
    if (this.#hot) this.onReadable?.()
  }

  #begin(kind: RecordKind): RecordState {
    this.#packer.begin()
    return {
      kind,
      events: 0,
      eventBytes: 0,
      diskBytes: 0,
      parts: 1,
      handedOn: false,
      endId: -1,
      segment: undefined,
      end: 0,
    }
  }

  /** Packs events from `from` on, as many as a record takes; gives where it stopped. */
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

  /** Lets the sink have the events from memory as long as it keeps up. */
  #handOn(
    events: readonly (LogEvent | MetricEvent)[],
    type: RecordKind,
    shared: boolean,
    bytes: number,
    state: RecordState,
  ): void {
    const finalizer = new Finalizer((status) => this.#partDone(state, status))
    const own =
      type === 'log' ? logBatch(events as LogEvent[], finalizer) : metricBatch(events as MetricEvent[], finalizer)
    const part = { batch: shared ? own.share() : own, bytes, state }
    if (!this.#hot || this.#lastHot !== undefined) {
      this.#openParts.push(part)
      return
    }
    this.#handOnPart(part)
  }

  #handOnPart(part: HotPart): void {
    const { state } = part
    state.parts++
    if (!state.handedOn) this.#unacknowledged.push(state)
    state.handedOn = true
    this.#hotParts.push(part)
    this.#hotBytes += part.bytes
  }

  readonly #flushSoon = (): void => {
    this.#flushing = undefined
    this.#flush()
  }

  /** Closes the open record, which is then written. */
  #flush(): void {
    const state = this.#open
    if (state === undefined) return
    this.#open = undefined
    this.#openParts = []
    const packed = this.#packer.finish()
    const origins = this.#origins
    this.#origins = []
    const { kind, events, eventBytes } = state
    state.diskBytes = recordBytes({ valueBytes: packed.values.length, textBytes: packed.texts.length })
    if (state.diskBytes > this.#store.segmentLimit) {
      this.#discardOversized(state, origins)
      return
    }
    this.#bytes += state.diskBytes
    const since = performance.now()
    this.#unwritten.push({ state, record: { kind, events, eventBytes, packed }, origins, since })
    this.#unwrittenBytes += state.diskBytes
    // The sink fell behind: from the next record on it reads the files.
    if (this.#hot && this.#hotBytes > hotLimit) this.#lastHot ??= state
    this.#collect()
  }

  /** Has what is packed written when it is much, when it has waited for some time, or when a turn of the loop brings nothing more. */
  #collect(): void {
    const [first] = this.#unwritten
    if (first === undefined) return
    const isDue = this.#unwrittenBytes >= writeTarget || performance.now() - first.since >= collectMs
    if (isDue) this.#writeOn()
    else this.#collecting ??= setImmediate(this.#collected)
  }

  readonly #collected = (): void => {
    this.#collecting = undefined
    if (this.#open === undefined) this.#writeOn()
    else this.#collect()
  }

  /** Writes some of what is packed, if that is not being done. */
  #writeOn(): void {
    if (this.#writing !== undefined || this.#unwritten.length === 0 || this.#closed) return
    this.#writing = Promise.resolve()
      .then(() => this.#writeSome())
      .then(() => {
        this.#writing = undefined
        if (!this.#stuck) this.#collect()
      })
  }

  async #writeSome(): Promise<void> {
    let first = this.#unwritten[0]
    for (; first !== undefined && this.#isDelivered(first.state); first = this.#unwritten[0]) {
      this.#leaveQueue(first)
      this.#forgetUnwritten(first)
    }
    if (first === undefined) {
      this.#stuck = false
    } else {
      const isWritten = await this.#writeRecords(this.#stuck ? [first] : this.#nextToWrite())
      this.#stuck = !isWritten && !this.#isDelivered(first.state)
    }
    this.#admitWaiting()
  }

  #nextToWrite(): Unwritten[] {
    let bytes = 0
    const beyond = this.#unwritten.findIndex(({ state }, index) => {
      bytes += state.diskBytes
      return index > 0 && bytes > writeTarget
    })
    return this.#unwritten.slice(0, beyond < 0 ? undefined : beyond)
  }

  /** Whether all of a record was delivered from memory meanwhile: there is nothing left to keep. */
  #isDelivered(state: RecordState): boolean {
    return state.parts === 1 && state.handedOn
  }

  #leaveQueue({ state }: Unwritten): void {
    this.#unwritten.shift()
    this.#unwrittenBytes -= state.diskBytes
    if (state === this.#lastHot) this.#turnCold(state)
  }

  /** False if the records must wait for room or for the disk. */
  async #writeRecords(items: readonly Unwritten[]): Promise<boolean> {
    let places: readonly Place[]
    try {
      places = await this.#store.append(
        items.map(({ record }) => record),
        Date.now(),
      )
    } catch (error) {
      this.#writeFailed(error)
      return false
    }
    // Should the records not survive, the next start knows that they were there.
    if (places.length > 0) this.#writeLedger()
    for (const [index, place] of places.entries()) this.#isWritten(items[index] as Unwritten, place)
    return places.length > 0
  }

  #isWritten(item: Unwritten, place: Place): void {
    const { state, record, origins } = item
    state.segment = place.segment
    state.end = place.end
    state.endId = place.firstId + record.events
    this.#leaveQueue(item)
    recycle(record.packed)
    for (const origin of origins) this.#unsynced.push(origin)
    this.#unsyncedSince = Math.min(this.#unsyncedSince, item.since)
    this.#unsyncedBytes += state.diskBytes
    this.#partEnded(state)
    if (!this.#hot) this.#reader.onReadable()
    if (this.#unsyncedBytes >= syncEarly && this.#failedSyncs === 0) void this.#sync()
    else this.#syncSoon()
  }

  #writeFailed(error: unknown): void {
    this.#error('writer_failed', codeOf(error), { error }, 'The disk buffer cannot be written; trying again.')
    if (codeOf(error) === 'EIO') this.#store.abandonNewest()
    if (codeOf(error) === 'ENOSPC') this.#store.dropSpare()
    this.#tryAgain()
  }

  #tryAgain(): void {
    if (this.#closing !== undefined) return
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      this.#releaseIfDone()
      this.#writeOn()
    }, retryMs)
  }

  #forgetUnwritten({ state, record, origins }: Unwritten): void {
    recycle(record.packed)
    for (const origin of origins) origin.release(1, 'delivered')
    this.#unacknowledged.splice(this.#unacknowledged.indexOf(state), 1)
    this.#left(state)
  }

  #discardOversized(state: RecordState, origins: readonly Finalizer[]): void {
    this.#error(
      'writer_failed',
      'record_too_large',
      { events: state.events },
      'An event is larger than a segment of the disk buffer; it passes without being kept.',
    )
    for (const origin of origins) origin.release(1, 'delivered')
    const index = this.#unacknowledged.indexOf(state)
    if (index >= 0) this.#unacknowledged.splice(index, 1)
    this.#events -= state.events
    if (index < 0) this.#counters.lost(state.events)
    else this.#counters.sent(state.events, state.eventBytes)
  }

  // --- Handing out ---

  take(): Batch | undefined {
    const part = this.#hotParts[0]
    if (part !== undefined) {
      this.#hotParts.shift()
      this.#hotBytes -= part.bytes
      return part.batch
    }
    if (this.#hot || this.#closed) return undefined
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
      this.#bytes -= recordBytes(header)
      return undefined // done before the last end
    }
    this.#missed(header.firstId, segment)
    const { events, eventBytes } = header
    const state: RecordState = {
      kind: header.kind,
      events,
      eventBytes,
      diskBytes: recordBytes(header),
      parts: 1,
      handedOn: true,
      endId,
      segment,
      end,
    }
    this.#expectedId = endId
    this.#unacknowledged.push(state)
    return this.#unpacked(state, bytes, header.valueBytes)
  }

  #unpacked(state: RecordState, bytes: Buffer, valueBytes: number): Batch {
    const finalizer = new Finalizer((status) => this.#partDone(state, status))
    return state.kind === 'log'
      ? logBatch(this.#unpacker.logs(bytes, valueBytes, state.events), finalizer)
      : metricBatch(this.#unpacker.metrics(bytes, valueBytes, state.events), finalizer)
  }

  /** Counts the events between what was expected and what came. */
  #missed(firstId: number, segment: Segment): void {
    const missing = firstId - this.#expectedId
    if (missing <= 0) return
    let known = 0
    // The record in front of which a gap was found may be damaged itself: the next one stands behind both.
    for (const [behind, events] of this.#gaps) {
      if (behind > firstId) continue
      known += events
      this.#gaps.delete(behind)
    }
    this.#expectedId = firstId
    const lost = Math.max(0, missing - known)
    if (lost === 0) return
    this.#events -= lost
    this.#counters.lost(lost)
    const fields = { events: lost, path: segment.path }
    this.#context.logger.error(fields, 'Events of the disk buffer are lost: their records are damaged or missing.')
  }

  /** All that the sink gets from memory has left the queue, this as the last: what comes behind it is read. */
  #turnCold({ segment, end, endId }: RecordState): void {
    this.#lastHot = undefined
    this.#hot = false
    const { newest, nextId } = this.#store
    if (segment !== undefined) this.#reader.skipTo(segment, end)
    else if (newest?.end !== undefined) this.#reader.skipTo(newest, newest.end) // it was not written any more
    this.#expectedId = segment === undefined ? nextId : endId
  }

  /** All that was written has been read: what is being packed is at hand, and so is what comes. */
  #turnHot(): void {
    const { newest, nextId } = this.#store
    if (newest !== undefined) this.#missed(nextId, newest)
    this.#hot = true
    // What the disk does not take is at hand too.
    const parts = [...this.#unwritten.map((item) => this.#partOf(item)), ...this.#openParts]
    this.#openParts = []
    for (const part of parts) this.#handOnPart(part)
    this.#acknowledge()
  }

  /** The events of a record that could not be written yet. */
  #partOf({ state, record }: Unwritten): HotPart {
    const { values, texts } = record.packed
    const batch = this.#unpacked(state, Buffer.concat([values, texts]), values.length)
    return { batch, bytes: state.eventBytes, state }
  }

  // --- Acknowledgement ---

  #partDone(state: RecordState, status: string): void {
    // What could not be delivered before the end stays for the next start.
    if (this.#closed || (this.#context.abandoning.aborted && status !== 'delivered')) return
    this.#partEnded(state)
  }

  #partEnded(state: RecordState): void {
    state.parts--
    if (state.parts === 0) this.#acknowledge()
    else if (state.parts === 1 && state === this.#unwritten[0]?.state) this.#writeOn()
  }

  /** Moves on over the records that are done. */
  #acknowledge(): void {
    let count = 0
    for (const state of this.#unacknowledged) {
      if (state.parts > 0 || state.segment === undefined) break
      count++
      this.#doneId = state.endId
      this.#done = { segment: state.segment.sequence, offset: state.end }
      this.#left(state)
    }
    this.#unacknowledged.splice(0, count)
    const { newest, nextId } = this.#store
    const atRest = this.#hot && this.#open === undefined && this.#unwritten.length === 0
    if (atRest && this.#unacknowledged.length === 0 && newest?.end !== undefined) {
      // All that was written is done, what is damaged included.
      this.#doneId = nextId
      this.#done = { segment: newest.sequence, offset: newest.end }
      this.#bytes = 0
      this.#nothingToLose()
    } else if (count === 0) {
      return
    }
    this.#ledgerTimer ??= setTimeout(() => {
      this.#ledgerTimer = undefined
      this.#writeLedger()
    }, ledgerMs)
    this.#releaseIfDone()
  }

  #releaseIfDone(): void {
    if (this.#closing !== undefined) return // the next start takes away what is done
    const [oldest] = this.#store.segments
    if (oldest !== undefined && this.#isDone(oldest)) this.#releasing ??= this.#releaseDone()
  }

  /** All that was written is done: no loss of power costs any of it. */
  #nothingToLose(): void {
    this.#unsyncedSince = Number.POSITIVE_INFINITY
    this.#syncingSince = Number.POSITIVE_INFINITY
    if (this.#failedSyncs > 0) for (const origin of this.#unsynced.splice(0)) origin.release(1, 'delivered')
    // Whoever calls may be about to write: those who wait come in a moment.
    if (this.#waiting.length > 0) setImmediate(() => this.#admitWaiting())
  }

  /** A record is no longer in the buffer. */
  #left(state: RecordState): void {
    this.#events -= state.events
    this.#bytes -= state.diskBytes
    this.#counters.sent(state.events, state.eventBytes)
  }

  #isDone(segment: Segment): boolean {
    if (segment === this.#store.newest) return false
    const { segment: sequence, offset } = this.#done
    return (
      segment.sequence < sequence ||
      (segment.sequence === sequence && segment.end !== undefined && offset >= segment.end)
    )
  }

  /** Gives segments back. The ledger is on the disk before: it must not speak of a segment that is gone. */
  async #releaseDone(): Promise<void> {
    try {
      for (;;) {
        const [oldest] = this.#store.segments
        if (oldest === undefined || !this.#isDone(oldest)) break
        // For each: what is done now may not have been when the one before was given back.
        this.#ledger.write(this.#state())
        await this.#ledger.sync()
        await this.#store.release(oldest)
      }
    } catch (error) {
      this.#error('writer_failed', codeOf(error), { error }, 'A segment of the disk buffer could not be given back.')
      this.#tryAgain()
    }
    this.#releasing = undefined
    this.#writeOn()
    this.#admitWaiting()
  }

  // --- Safety ---

  /**
   * Syncs 500 ms after the last sync began, and not before that one has ended; earlier if what was written since would else be
   * older than that when it is on the disk.
   */
  #syncSoon(): void {
    if (this.#syncing !== undefined || this.#syncTimer !== undefined) return
    const now = performance.now()
    const regular = Math.max(now + minSyncMs, this.#syncBegan + syncMs)
    const latest = this.#unsyncedSince + syncMs - Math.min(2 * this.#syncTook + minSyncMs, syncMs)
    const wait = this.#failedSyncs > 0 ? retryMs : Math.max(0, Math.min(regular, latest) - now)
    this.#syncTimer = setTimeout(() => void this.#sync(), wait)
  }

  async #sync(): Promise<void> {
    clearTimeout(this.#syncTimer)
    this.#syncTimer = undefined
    if (this.#syncing !== undefined) {
      await this.#syncing
      return
    }
    this.#syncBegan = performance.now()
    this.#syncing = this.#syncNow()
    await this.#syncing
    this.#syncing = undefined
    this.#syncTook = Math.max(performance.now() - this.#syncBegan, this.#syncTook * 0.9)
    if ((this.#unsynced.length > 0 || this.#failedSyncs > 0) && !this.#closed) this.#syncSoon()
    this.#admitWaiting()
  }

  async #syncNow(): Promise<void> {
    const origins = this.#unsynced
    const bytes = this.#unsyncedBytes
    this.#unsynced = []
    this.#syncingSince = this.#unsyncedSince
    this.#unsyncedSince = Number.POSITIVE_INFINITY
    const { nextId } = this.#store
    const end = this.#end
    let status: 'delivered' | 'errored' = 'delivered'
    try {
      if (this.#doubtful) this.#writeAgain()
      await this.#store.sync()
      this.#doubtful = false
      this.#failedSyncs = 0
      this.#covered = end
      if (this.#unsafeUntil === undefined || !isBefore(this.#done, this.#unsafeUntil)) {
        this.#unsafeUntil = undefined
        this.#synced = end
        this.#syncedId = nextId
      }
    } catch (error) {
      this.#syncFailed(error, end)
      if (this.#failedSyncs > 0 && this.#doneId < nextId) {
        this.#unsynced = [...origins, ...this.#unsynced]
        this.#unsyncedSince = Math.min(this.#syncingSince, this.#unsyncedSince)
        this.#syncingSince = Number.POSITIVE_INFINITY
        this.#writeLedger()
        return
      }
      // It is unknown how much of it is on the disk. Sources that can send it again must do so, unless it was delivered meanwhile.
      if (this.#doneId < nextId) status = 'errored'
    }
    this.#syncingSince = Number.POSITIVE_INFINITY
    this.#unsyncedBytes -= bytes
    for (const origin of origins) origin.release(1, status)
    this.#writeLedger()
  }

  /** A sync that fails leaves pages that count as written: it is tried again with what is not done written again. */
  #syncFailed(error: unknown, end: Position): void {
    this.#store.abandonNewest()
    this.#doubtful = true
    const attempt = ++this.#failedSyncs
    if (attempt >= syncAttempts) {
      this.#failedSyncs = 0
      this.#noteUnsafe(end)
    }
    this.#error(
      'writer_failed',
      codeOf(error),
      { error, attempt },
      attempt < syncAttempts
        ? 'The disk buffer could not be synced; trying again.'
        : 'The disk buffer could not be synced; its newest events are not safe.',
    )
  }

  /** What lies before this is not tried to be made safe any more. */
  #noteUnsafe(end: Position): void {
    this.#unsafeUntil = end
    this.#covered = end
  }

  #writeAgain(): void {
    const from = isBefore(this.#covered, this.#done) ? this.#done : this.#covered
    if (this.#store.writeAgain(from)) return
    throw Object.assign(new Error('Data whose sync failed reads back differently than it was written.'), {
      code: 'EIO',
    })
  }

  /** Where the records end. */
  get #end(): Position {
    const { newest } = this.#store
    return { segment: newest?.sequence ?? 0, offset: newest?.end ?? newest?.size ?? 0 }
  }

  #state(): LedgerState {
    return {
      read: this.#done,
      readId: this.#doneId,
      synced: this.#synced,
      syncedId: this.#syncedId,
      nextId: this.#store.nextId,
      unsafe: this.#doubtful || this.#unsafeUntil !== undefined,
    }
  }

  #writeLedger(): void {
    if (this.#closed) return
    try {
      this.#ledger.write(this.#state())
    } catch (error) {
      this.#error('writer_failed', codeOf(error), { error }, 'The ledger of the disk buffer could not be written.')
    }
  }

  #damaged({ code, path, offset, error }: Damage): void {
    this.#error(
      'reader_failed',
      code,
      { path, offset, error },
      'The disk buffer is damaged; what is whole is still delivered.',
    )
  }

  #reportFinding(code: string, events: number, path: string): void {
    this.#error('reader_failed', code, { path, events }, 'The disk buffer was found incomplete.')
  }

  #error(type: 'reader_failed' | 'writer_failed', code: string, fields: object, message: string): void {
    this.#counters.error(type, code)
    const { limit, logger } = this.#context
    limit.log(logger, 'error', { error_type: type, error_code: code, ...fields }, message)
  }

  /** Closes, and takes the folder away if nothing is left in it. */
  async removeIfEmpty(): Promise<void> {
    await this.close()
    if (this.#events === 0) this.#store.files.rmSync(this.#context.folder, { recursive: true, force: true })
  }

  /** Writes down what must survive and lets go of the folder. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.onReadable = undefined
    // As long as syncing lets more in.
    do {
      clearImmediate(this.#flushing)
      this.#flushing = undefined
      this.#flush()
      do {
        this.#writeOn()
        await this.#writing
      } while (this.#unwritten.length > 0 && !this.#stuck)
      clearTimeout(this.#retry)
      await this.#syncing
      await this.#sync()
      await this.#releasing
    } while (this.#failedSyncs > 0 || this.#open !== undefined || this.#writing !== undefined)
    clearTimeout(this.#ledgerTimer)
    this.#writeLedger()
    this.#closed = true
    clearTimeout(this.#syncTimer)
    clearImmediate(this.#collecting)
    await this.#ledger.sync().catch((error: unknown) => {
      this.#error('writer_failed', codeOf(error), { error }, 'The ledger of the disk buffer could not be synced.')
    })
    const lost = this.#unwritten.reduce((sum, { state }) => sum + state.events, 0)
    if (lost > 0) {
      this.#counters.lost(lost)
      this.#context.logger.error(
        { events: lost },
        'Events are lost: the disk buffer could not be written before the end.',
      )
    }
    for (const { origins } of this.#unwritten) for (const origin of origins) origin.release(1, 'errored')
    for (const { batch, admitted } of this.#waiting.splice(0)) {
      finalizeBatch(batch, 'errored')
      admitted()
    }
    await this.#reader.close()
    this.#store.close()
    this.#ledger.close()
    this.#lock[Symbol.dispose]()
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'UNKNOWN'
}
