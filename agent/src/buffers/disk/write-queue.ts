// Packed records waiting to be written to the files: in order, several at once, on the thread pool. A failed write is retried
// every second; a record whose events were all delivered meanwhile is not written.

import { type Accounting, codeOf } from './accounting.ts'
import { recycle } from './packing/record-memory.ts'
import { isDelivered, type RecordState, type Unwritten } from './record-state.ts'
import type { RecordPlace, SegmentStore } from './store.ts'

/**
 * Packed bytes that justify a separate write; smaller amounts are collected for a moment, because each write costs two
 * thread switches.
 */
const writeTarget = 1024 * 1024
const collectMs = 10
/** Maximum bytes of packed records in the queue before writers must wait too. */
const queueLimit = 3 * 1024 * 1024
const retryMs = 1000

export interface WriteQueueHooks {
  /** Whether a record is being packed: the queue then waits briefly for it. */
  isFilling(): boolean
  /** The files contain more records. */
  onAppended(): void
  /** A record has left the queue, written or not. */
  onDequeued(state: RecordState): void
  onWritten(item: Unwritten): void
  /** All events of a record were delivered before it could be written. */
  onDelivered(item: Unwritten): void
  /** A write has ended, successfully or not. */
  onEnded(): void
  /** It is time to retry a failed write. */
  onRetry(): void
}

export class WriteQueue {
  readonly #store: SegmentStore
  readonly #accounting: Accounting
  readonly #hooks: WriteQueueHooks
  /** In order; the first ones may be in a running write. */
  #items: Unwritten[] = []
  #bytes = 0
  #writing: Promise<void> | undefined
  #collecting: NodeJS.Immediate | undefined
  /** Whether the first record did not fit, or the disk refused it. */
  #stuck = false
  #retry: NodeJS.Timeout | undefined
  #retries = true
  #closed = false

  constructor(store: SegmentStore, accounting: Accounting, hooks: WriteQueueHooks) {
    this.#store = store
    this.#accounting = accounting
    this.#hooks = hooks
  }

  get items(): readonly Unwritten[] {
    return this.#items
  }

  get bytes(): number {
    return this.#bytes
  }

  /** When the oldest record was packed. */
  get since(): number {
    return this.#items[0]?.since ?? Number.POSITIVE_INFINITY
  }

  get isStuck(): boolean {
    return this.#stuck
  }

  /** Whether the disk is still writing earlier records, so that a lack of space is temporary. */
  get isBusy(): boolean {
    return !this.#stuck && this.#bytes >= queueLimit
  }

  /** Resolves when no write is running. */
  get settled(): Promise<void> | undefined {
    return this.#writing
  }

  push(item: Unwritten): void {
    this.#items.push(item)
    this.#bytes += item.state.diskBytes
  }

  /** Writes the queue when it is long, when it has waited for some time, or when a turn of the loop adds nothing. */
  collect(): void {
    const [first] = this.#items
    if (first === undefined) return
    const isDue = this.#bytes >= writeTarget || performance.now() - first.since >= collectMs
    if (isDue) this.writeOn()
    else this.#collecting ??= setImmediate(this.#collected)
  }

  readonly #collected = (): void => {
    this.#collecting = undefined
    if (this.#hooks.isFilling()) this.collect()
    else this.writeOn()
  }

  /** Writes some records, unless a write is running. */
  writeOn(): void {
    if (this.#writing !== undefined || this.#items.length === 0 || this.#closed) return
    this.#writing = Promise.resolve()
      .then(() => this.#writeSome())
      .then(() => {
        this.#writing = undefined
        if (!this.#stuck) this.collect()
      })
  }

  async #writeSome(): Promise<void> {
    let first = this.#items[0]
    for (; first !== undefined && isDelivered(first.state); first = this.#items[0]) {
      this.#dequeue(first)
      recycle(first.record.packed)
      this.#hooks.onDelivered(first)
    }
    if (first === undefined) {
      this.#stuck = false
    } else {
      const isWritten = await this.#write(this.#stuck ? [first] : this.#nextToWrite())
      this.#stuck = !isWritten && !isDelivered(first.state)
    }
    this.#hooks.onEnded()
  }

  #nextToWrite(): Unwritten[] {
    let bytes = 0
    const beyond = this.#items.findIndex(({ state }, index) => {
      bytes += state.diskBytes
      return index > 0 && bytes > writeTarget
    })
    return this.#items.slice(0, beyond < 0 ? undefined : beyond)
  }

  #dequeue({ state }: Unwritten): void {
    this.#items.shift()
    this.#bytes -= state.diskBytes
    this.#hooks.onDequeued(state)
  }

  /** False if the records must wait for space or for the disk. */
  async #write(items: readonly Unwritten[]): Promise<boolean> {
    let places: readonly RecordPlace[]
    try {
      places = await this.#store.append(
        items.map(({ record }) => record),
        Date.now(),
      )
    } catch (error) {
      this.#failed(error)
      return false
    }
    // If the records do not survive, the next start still knows that they existed.
    if (places.length > 0) this.#hooks.onAppended()
    for (const [index, place] of places.entries()) this.#written(items[index] as Unwritten, place)
    return places.length > 0
  }

  #written(item: Unwritten, place: RecordPlace): void {
    const { state, record } = item
    state.segment = place.segment
    state.end = place.end
    state.endId = place.firstId + record.events
    this.#dequeue(item)
    recycle(record.packed)
    this.#hooks.onWritten(item)
  }

  #failed(error: unknown): void {
    this.#accounting.writerFailed(error, 'Could not write the disk buffer; trying again.')
    if (codeOf(error) === 'EIO') this.#store.abandonNewest()
    if (codeOf(error) === 'ENOSPC') this.#store.dropSpare()
    this.retryLater()
  }

  retryLater(): void {
    if (!this.#retries) return
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      this.#hooks.onRetry()
      this.writeOn()
    }, retryMs)
  }

  /** From now on a failed write is not retried. */
  endRetries(): void {
    this.#retries = false
  }

  /** Writes all records, except those that the disk refuses. */
  async drain(): Promise<void> {
    do {
      this.writeOn()
      await this.#writing
    } while (this.#items.length > 0 && !this.#stuck)
    clearTimeout(this.#retry)
  }

  /** Stops writing; returns the records that no file contains. */
  close(): readonly Unwritten[] {
    this.#closed = true
    clearImmediate(this.#collecting)
    return this.#items
  }
}
