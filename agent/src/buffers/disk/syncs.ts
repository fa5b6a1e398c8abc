// When written records are synced, and when their sources get the acknowledgement. A sync begins every 500 ms, or earlier, so that
// a power failure costs no more than the events of the last 500 ms. A sync that fails leaves pages that the kernel considers
// written: the buffer writes the records again and syncs them, some times, and then reports them as not safe.

import type { Finalizer } from '../../event/finalizer.ts'
import type { Accounting } from './accounting.ts'
import { isBefore, type LedgerState, type Position } from './ledger.ts'
import type { Progress } from './progress.ts'
import type { Unwritten } from './record-state.ts'
import type { SegmentStore } from './store.ts'

/** Longest time that events may be unsynced, unless the disk is slower; after it, no more are accepted. */
const syncMs = 500
/** Events within a moment are synced together, also after a long time without any. */
const minSyncMs = 20
/** Attempts of a failing sync, each after writing its data again, before its sources get the error. */
const syncAttempts = 3
const retryMs = 1000
/** Written bytes after which a sync does not wait for its time, and after which writers wait for it. */
const syncEarly = 32 * 1024 * 1024
const unsyncedLimit = 128 * 1024 * 1024

export interface SyncHooks {
  writeLedger(): void
  /** Called at the end of each sync: more may be accepted. */
  onEnded(): void
}

/** The safe part of the buffer's files at the start. */
export interface SyncStart {
  readonly synced: Position
  readonly syncedId: number
  readonly unsafe: boolean
}

export class SyncSchedule {
  readonly #store: SegmentStore
  readonly #progress: Progress
  readonly #accounting: Accounting
  readonly #hooks: SyncHooks
  /** Up to here the ledger calls everything safe. */
  #synced: Position
  #syncedId: number
  /** The end of the data of the last sync that succeeded, or that is not tried again. */
  #covered: Position
  /** Finalizers of written events. */
  #unsynced: Finalizer[] = []
  #unsyncedBytes = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #began = Number.NEGATIVE_INFINITY
  /** When the first record was packed that is written and that no sync covers yet, and that the running sync covers. */
  #unsyncedSince = Number.POSITIVE_INFINITY
  #syncingSince = Number.POSITIVE_INFINITY
  /** How long recent syncs took, at most. */
  #took = 0
  #failures = 0
  /** No sync has succeeded since one has failed: the kernel may consider written whatever was written before or meanwhile. */
  #doubtful = false
  /** No sync makes the data before this position safe any more, until it is done. */
  #unsafeUntil: Position | undefined
  #closed = false

  constructor(store: SegmentStore, progress: Progress, accounting: Accounting, start: SyncStart, hooks: SyncHooks) {
    this.#store = store
    this.#progress = progress
    this.#accounting = accounting
    this.#hooks = hooks
    this.#synced = start.synced
    this.#syncedId = start.syncedId
    this.#covered = start.synced
    if (start.unsafe) this.#noteUnsafe(store.end)
  }

  get state(): Pick<LedgerState, 'synced' | 'syncedId' | 'unsafe'> {
    return {
      synced: this.#synced,
      syncedId: this.#syncedId,
      unsafe: this.#doubtful || this.#unsafeUntil !== undefined,
    }
  }

  /** Whether the last sync has failed and will be tried again. */
  get isFailing(): boolean {
    return this.#failures > 0
  }

  /** Resolves when no sync is running. */
  get settled(): Promise<void> | undefined {
    return this.#running
  }

  /**
   * Whether the data that a power failure would cost is as much, or as old, as it may be.
   * @param unwrittenSince when the oldest record was packed that is not even written
   */
  isLate(unwrittenSince: number): boolean {
    if (this.#unsyncedBytes > unsyncedLimit) return true
    return performance.now() - Math.min(this.#syncingSince, this.#unsyncedSince, unwrittenSince) >= syncMs
  }

  /** Plans a sync of the records that the last run left unsynced. */
  startWithLeftovers(): void {
    if (!this.#store.hasUnsynced) return
    this.#unsyncedSince = performance.now()
    this.#planSoon()
  }

  onWritten({ origins, since, state }: Unwritten): void {
    for (const origin of origins) this.#unsynced.push(origin)
    this.#unsyncedSince = Math.min(this.#unsyncedSince, since)
    this.#unsyncedBytes += state.diskBytes
  }

  /** Plans a sync, or begins one if much was written. */
  plan(): void {
    if (this.#unsyncedBytes >= syncEarly && this.#failures === 0) void this.sync()
    else this.#planSoon()
  }

  /** All that was written is done: no power failure costs any of it. */
  nothingToLose(): void {
    this.#unsyncedSince = Number.POSITIVE_INFINITY
    this.#syncingSince = Number.POSITIVE_INFINITY
    if (this.#failures > 0) for (const origin of this.#unsynced.splice(0)) origin.release(1, 'delivered')
  }

  /**
   * Plans the next sync 500 ms after the last one began, and not before that one has ended; earlier if the data written since
   * would otherwise be older than that when it is on the disk.
   */
  #planSoon(): void {
    if (this.#running !== undefined || this.#timer !== undefined) return
    const now = performance.now()
    const regular = Math.max(now + minSyncMs, this.#began + syncMs)
    const latest = this.#unsyncedSince + syncMs - Math.min(2 * this.#took + minSyncMs, syncMs)
    const wait = this.#failures > 0 ? retryMs : Math.max(0, Math.min(regular, latest) - now)
    this.#timer = setTimeout(() => void this.sync(), wait)
  }

  /** Syncs now; if a sync is running already, only waits for its end. */
  async sync(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#running !== undefined) {
      await this.#running
      return
    }
    this.#began = performance.now()
    this.#running = this.#syncNow()
    await this.#running
    this.#running = undefined
    this.#took = Math.max(performance.now() - this.#began, this.#took * 0.9)
    if ((this.#unsynced.length > 0 || this.#failures > 0) && !this.#closed) this.#planSoon()
    this.#hooks.onEnded()
  }

  async #syncNow(): Promise<void> {
    const origins = this.#unsynced
    const bytes = this.#unsyncedBytes
    this.#unsynced = []
    this.#syncingSince = this.#unsyncedSince
    this.#unsyncedSince = Number.POSITIVE_INFINITY
    const { end, nextId } = this.#store
    let status: 'delivered' | 'errored' = 'delivered'
    try {
      if (this.#doubtful) this.#writeAgain()
      await this.#store.sync()
      this.#succeeded(end, nextId)
    } catch (error) {
      this.#failed(error, end)
      if (this.#failures > 0 && this.#progress.doneId < nextId) {
        this.#unsynced = [...origins, ...this.#unsynced]
        this.#unsyncedSince = Math.min(this.#syncingSince, this.#unsyncedSince)
        this.#syncingSince = Number.POSITIVE_INFINITY
        this.#hooks.writeLedger()
        return
      }
      // It is unknown how much of it is on the disk. Sources that can send it again must do so, unless it was delivered meanwhile.
      if (this.#progress.doneId < nextId) status = 'errored'
    }
    this.#syncingSince = Number.POSITIVE_INFINITY
    this.#unsyncedBytes -= bytes
    for (const origin of origins) origin.release(1, status)
    this.#hooks.writeLedger()
  }

  #succeeded(end: Position, nextId: number): void {
    this.#doubtful = false
    this.#failures = 0
    this.#covered = end
    if (this.#unsafeUntil !== undefined && isBefore(this.#progress.done, this.#unsafeUntil)) return
    this.#unsafeUntil = undefined
    this.#synced = end
    this.#syncedId = nextId
  }

  /** The next attempt writes again what is not done. */
  #failed(error: unknown, end: Position): void {
    this.#store.abandonNewest()
    this.#doubtful = true
    const attempt = ++this.#failures
    if (attempt >= syncAttempts) {
      this.#failures = 0
      this.#noteUnsafe(end)
    }
    this.#accounting.writerFailed(
      error,
      attempt < syncAttempts
        ? 'The disk buffer could not be synced; trying again.'
        : 'The disk buffer could not be synced; its newest events are not safe.',
      { attempt },
    )
  }

  /** No further attempt is made to make safe the data before a position. */
  #noteUnsafe(end: Position): void {
    this.#unsafeUntil = end
    this.#covered = end
  }

  #writeAgain(): void {
    const { done } = this.#progress
    if (this.#store.writeAgain(isBefore(this.#covered, done) ? done : this.#covered)) return
    throw Object.assign(new Error('Data whose sync failed reads back differently than it was written.'), {
      code: 'EIO',
    })
  }

  /** Plans no further sync. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }
}
