// A sink's buffer on disk. This class decides which batches enter, and connects the other parts: intake packs events into
// records, write-queue writes the records, syncs makes them durable and acknowledges them to their sources, handout passes their
// events to the sink, progress tracks finished events, and release removes files. An event stays until the destination has
// answered for it, and is read again after a crash.

import { join } from 'node:path'
import { makeDirectory } from '../data-dir.ts'
import { PenstockError } from '../errors.ts'
import { type Batch, finalizeBatch } from '../event/batch.ts'
import type { Finalizer } from '../event/finalizer.ts'
import type { DiskBufferOptions, SinkBuffer } from './buffer.ts'
import { Accounting, type AccountingContext } from './disk/accounting.ts'
import { type DiskFiles, diskFiles } from './disk/files.ts'
import { Handout } from './disk/handout.ts'
import { Intake, recordTarget } from './disk/intake.ts'
import type { Ledger } from './disk/ledger.ts'
import { lockFolder, lockName } from './disk/lock.ts'
import { Progress } from './disk/progress.ts'
import { type Damage, SegmentReader } from './disk/reader.ts'
import { headerBytes } from './disk/record.ts'
import type { RecordState, Unwritten } from './disk/record-state.ts'
import { type Recovered, recover } from './disk/recovery.ts'
import { defaultSegmentLimit } from './disk/segment.ts'
import { SegmentRelease } from './disk/segment-release.ts'
import { SegmentStore } from './disk/store.ts'
import { SyncSchedule } from './disk/syncs.ts'
import { WriteQueue } from './disk/write-queue.ts'

const ledgerMs = 50

export interface DiskBufferContext extends AccountingContext {
  readonly folder: string
  /** After this abort, events that the sink could not deliver stay in the buffer for the next start. */
  readonly abandoning: AbortSignal
  /** Called with the number of events dropped because the buffer is full. */
  readonly onDrop?: (events: number) => void
  /** Whether byte lines stored by an earlier run become objects, because the configuration has no byte lane. */
  readonly linesAsObjects?: boolean
  /** Test doubles for the file operations, and smaller segments. */
  readonly files?: DiskFiles
  readonly segmentLimit?: number
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
  readonly #lock: Disposable
  readonly #accounting: Accounting
  readonly #ledger: Ledger
  readonly #store: SegmentStore
  readonly #progress: Progress
  readonly #handout: Handout
  readonly #intake: Intake
  readonly #queue: WriteQueue
  readonly #syncs: SyncSchedule
  readonly #release: SegmentRelease
  #whenFull: 'block' | 'drop_newest'
  readonly #waiting: Waiting[] = []
  #admitting = false
  #ledgerTimer: NodeJS.Timeout | undefined
  #closing: Promise<void> | undefined
  #closed = false

  /** Opens the folder, creates it if missing, and reads its content. */
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
    const { folder, files = diskFiles, segmentLimit = defaultSegmentLimit } = context
    const { maxSize } = options
    this.#context = context
    this.#whenFull = options.whenFull
    this.limit = { bytes: maxSize }
    this.#lock = lock
    const found = recover(files, folder)
    this.#ledger = found.ledger
    this.#accounting = new Accounting(context)
    this.#store = new SegmentStore({ ...found, files, folder, maxSize, segmentLimit })
    this.#progress = new Progress(found.read, found.readId)
    this.#handout = this.#newHandout(found)
    this.#intake = new Intake(this.#handout, segmentLimit, {
      onRecord: (item) => this.#onRecord(item),
      onOversized: (state, origins) => this.#onOversized(state, origins),
    })
    this.#queue = this.#newQueue()
    this.#syncs = new SyncSchedule(this.#store, this.#progress, this.#accounting, found, {
      writeLedger: () => this.#writeLedger(),
      onEnded: () => this.#admitWaiting(),
    })
    this.#release = this.#newRelease()
    this.#countFound(found)
    this.#writeLedger()
    this.#syncs.startWithLeftovers()
    if (this.events > 0) {
      const fields = { events: this.events, bytes: this.bytes, folder }
      context.logger.info(fields, 'The disk buffer contains events of an earlier run.')
    }
  }

  #newHandout({ read, gaps }: Recovered): Handout {
    const reader = new SegmentReader(this.#store, read, (damage) => this.#onDamage(damage))
    reader.onReadable = () => this.onReadable?.()
    const { linesAsObjects = false } = this.#context
    const parts = { store: this.#store, reader, progress: this.#progress, accounting: this.#accounting, gaps }
    return new Handout(
      { ...parts, linesAsObjects },
      {
        onPartEnded: (state, status) => this.#onPartEnded(state, status),
        unwritten: () => this.#queue.items,
        onCaughtUp: () => this.#acknowledge(),
      },
    )
  }

  #newQueue(): WriteQueue {
    return new WriteQueue(this.#store, this.#accounting, {
      isFilling: () => this.#intake.isOpen,
      onAppended: () => this.#writeLedger(),
      onDequeued: (state) => this.#handout.recordDequeued(state),
      onWritten: (item) => this.#onWritten(item),
      onDelivered: (item) => this.#onDeliveredUnwritten(item),
      onEnded: () => this.#admitWaiting(),
      onRetry: () => this.#releaseDone(),
    })
  }

  #newRelease(): SegmentRelease {
    return new SegmentRelease(this.#store, this.#progress, {
      syncLedger: () => {
        this.#ledger.write(this.#ledgerState)
        return this.#ledger.sync()
      },
      onFailed: (error) => {
        this.#accounting.writerFailed(error, 'Could not release a segment of the disk buffer.')
        this.#queue.retryLater()
      },
      onEnded: () => {
        this.#queue.writeOn()
        this.#admitWaiting()
      },
    })
  }

  /** Counts the events and losses found at start. */
  #countFound({ findings, gaps, segments, nextId, readId, read }: Recovered): void {
    let lost = 0
    for (const finding of findings) {
      lost += finding.lost
      const fields = { path: finding.path, events: finding.lost }
      this.#accounting.error('reader_failed', finding.code, fields, 'The disk buffer is incomplete.')
    }
    this.#accounting.lost(lost)
    let missing = 0
    for (const gap of gaps.values()) missing += gap
    this.#accounting.events = nextId - readId - missing
    this.#accounting.bytes = segments.reduce((sum, { end, size }) => sum + (end ?? size), 0) - read.offset
  }

  get events(): number {
    return this.#accounting.events
  }

  get bytes(): number {
    return this.#accounting.bytes
  }

  get empty(): boolean {
    return this.#handout.isEmpty && this.#waiting.length === 0
  }

  /** Changes the limits for new events; stored events stay. */
  reconfigure(options: DiskBufferOptions): void {
    this.#whenFull = options.whenFull
    this.limit = { bytes: options.maxSize }
    this.#store.maxSize = options.maxSize
    this.#queue.writeOn()
    this.#admitWaiting()
  }

  take(): Batch | undefined {
    return this.#handout.take()
  }

  // --- Admission ---

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
    return this.#whenFull === 'drop_newest' && !this.#queue.isBusy ? 'drop' : 'wait'
  }

  #hasRoom(batch: Batch): boolean {
    if (this.#queue.isStuck || this.#queue.isBusy) return false
    if (this.#whenFull === 'block' && this.#syncs.isLate(this.#queue.since)) return false
    const packed = this.#queue.bytes + this.#intake.bytes
    return this.#store.fits(packed + headerBytes + Math.min(batch.bytes + batch.count * 8, 2 * recordTarget))
  }

  #admit(batch: Batch, admission: 'enter' | 'drop'): void {
    if (admission === 'enter') {
      this.#accounting.received(batch.count, batch.bytes)
      this.#intake.take(batch)
      if (this.#handout.isHot) this.onReadable?.()
      return
    }
    this.#accounting.discarded(batch.count, batch.bytes)
    this.#context.onDrop?.(batch.count)
    finalizeBatch(batch, 'dropped')
  }

  #admitWaiting(): void {
    // Admission calls the reader, which may take events, which would start admission again.
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

  // --- From packed to written ---

  #onRecord(item: Unwritten): void {
    this.#accounting.bytes += item.state.diskBytes
    this.#queue.push(item)
    this.#handout.recordQueued(item.state)
    this.#queue.collect()
  }

  #onOversized(state: RecordState, origins: readonly Finalizer[]): void {
    this.#accounting.error(
      'writer_failed',
      'record_too_large',
      { events: state.events },
      'An event is larger than a segment of the disk buffer; passing it on without storing it.',
    )
    for (const origin of origins) origin.release(1, 'delivered')
    this.#accounting.passed(state, this.#progress.forget(state))
  }

  #onWritten(item: Unwritten): void {
    this.#syncs.onWritten(item)
    this.#endPart(item.state)
    this.#handout.onWritten()
    this.#syncs.plan()
  }

  #onDeliveredUnwritten({ state, origins }: Unwritten): void {
    for (const origin of origins) origin.release(1, 'delivered')
    this.#progress.forget(state)
    this.#accounting.left(state)
  }

  // --- Acknowledgement ---

  #onPartEnded(state: RecordState, status: string): void {
    // Events undelivered at the stop stay for the next start.
    if (this.#closed || (this.#context.abandoning.aborted && status !== 'delivered')) return
    this.#endPart(state)
  }

  #endPart(state: RecordState): void {
    state.parts--
    if (state.parts === 0) this.#acknowledge()
    else if (state.parts === 1 && state === this.#queue.items[0]?.state) this.#queue.writeOn()
  }

  /** Advances past the finished records. */
  #acknowledge(): void {
    const done = this.#progress.advance()
    for (const state of done) this.#accounting.left(state)
    const { newest, nextId } = this.#store
    const isAtRest = this.#handout.isHot && !this.#intake.isOpen && this.#queue.items.length === 0
    if (isAtRest && this.#progress.isSettled && newest?.end !== undefined) {
      // Everything written is finished, including damaged records.
      this.#progress.finish({ segment: newest.sequence, offset: newest.end }, nextId)
      this.#accounting.bytes = 0
      this.#syncs.nothingToLose()
      // Deferred: the caller may still be writing, and admission would start again.
      if (this.#waiting.length > 0) setImmediate(() => this.#admitWaiting())
    } else if (done.length === 0) {
      return
    }
    this.#ledgerTimer ??= setTimeout(() => {
      this.#ledgerTimer = undefined
      this.#writeLedger()
    }, ledgerMs)
    this.#releaseDone()
  }

  #releaseDone(): void {
    if (this.#closing === undefined) this.#release.start() // the next start releases the remaining segments
  }

  // --- The ledger and reports ---

  get #ledgerState() {
    const { done: read, doneId: readId } = this.#progress
    return { read, readId, ...this.#syncs.state, nextId: this.#store.nextId }
  }

  #writeLedger(): void {
    if (this.#closed) return
    try {
      this.#ledger.write(this.#ledgerState)
    } catch (error) {
      this.#accounting.writerFailed(error, 'Could not write the ledger of the disk buffer.')
    }
  }

  #onDamage({ code, path, offset, error }: Damage): void {
    const message = 'The disk buffer is damaged; its intact events are still delivered.'
    this.#accounting.error('reader_failed', code, { path, offset, error }, message)
  }

  // --- The end ---

  /** Closes, and removes the folder if it holds no events. */
  async removeIfEmpty(): Promise<void> {
    await this.close()
    if (this.events === 0) this.#store.files.rmSync(this.#context.folder, { recursive: true, force: true })
  }

  /** Writes everything that must survive, and releases the folder. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.onReadable = undefined
    this.#queue.endRetries()
    // A sync may admit more events.
    do {
      this.#intake.flush()
      await this.#queue.drain()
      await this.#syncs.settled
      await this.#syncs.sync()
      await this.#release.settled
    } while (this.#syncs.isFailing || this.#intake.isOpen || this.#queue.settled !== undefined)
    clearTimeout(this.#ledgerTimer)
    this.#writeLedger()
    this.#closed = true
    this.#syncs.close()
    this.#handout.stop()
    const unwritten = this.#queue.close()
    await this.#ledger.sync().catch((error: unknown) => {
      this.#accounting.writerFailed(error, 'Could not sync the ledger of the disk buffer.')
    })
    this.#endUnwritten(unwritten)
    for (const { batch, admitted } of this.#waiting.splice(0)) {
      finalizeBatch(batch, 'errored')
      admitted()
    }
    await this.#handout.close()
    this.#store.close()
    this.#ledger.close()
    this.#lock[Symbol.dispose]()
  }

  #endUnwritten(unwritten: readonly Unwritten[]): void {
    const lost = unwritten.reduce((sum, { state }) => sum + state.events, 0)
    if (lost > 0) {
      this.#accounting.lost(lost)
      const message = 'Events are lost: the disk buffer could not be written before the end.'
      this.#context.logger.error({ events: lost }, message)
    }
    for (const { origins } of unwritten) for (const origin of origins) origin.release(1, 'errored')
  }
}
