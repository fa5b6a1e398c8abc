// Decides when written records are synced, and when their sources get the acknowledgement. A sync starts every 500 ms, or earlier,
// so that a power failure loses at most the events of the last 500 ms. A failed sync leaves pages that the kernel considers
// written: the buffer rewrites the records and syncs again several times, and then reports them as not safe.

import type { Finalizer } from '../../event/finalizer.ts'
import type { Accounting } from './accounting.ts'
import { isBefore, type LedgerState, type Position } from './ledger.ts'
import type { Progress } from './progress.ts'
import type { Unwritten } from './record-state.ts'
import type { SegmentStore } from './store.ts'

/** Maximum age of unsynced events, unless the disk is slower; beyond it, the buffer accepts no more. */
const syncMs = 500
/** Events within this time are synced together, even after a long idle time. */
const minSyncMs = 20
/** Number of attempts of a failing sync, each with a rewrite of its data, before the sources get the error. */
const syncAttempts = 3
const retryMs = 1000
/** Number of written bytes after which a sync starts early, and after which writers wait for it. */
const syncEarly = 32 * 1024 * 1024
const unsyncedLimit = 128 * 1024 * 1024

export interface SyncHooks {
  writeLedger(): void
  /** Called at the end of each sync, when more events may be accepted. */
  onEnded(): void
}

/** The durable part of the buffer's files at start. */
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
  /** Position up to which the ledger considers everything durable. */
  #synced: Position
  #syncedId: number
  /** End of the data of the last sync that succeeded or was given up. */
  #covered: Position
  /** Finalizers of written but unsynced events. */
  #unsynced: Finalizer[] = []
  #unsyncedBytes = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #began = Number.NEGATIVE_INFINITY
  /** When the first unsynced record was packed; and the same for the running sync. */
  #unsyncedSince = Number.POSITIVE_INFINITY
  #syncingSince = Number.POSITIVE_INFINITY
  /** Maximum duration of recent syncs. */
  #took = 0
  #failures = 0
  /** Whether no sync has succeeded since a failed one: the kernel may consider all data written meanwhile as written. */
  #doubtful = false
  /** Position before which no sync can make the data durable any more, until it is finished. */
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

  /** Whether the last sync failed and will be retried. */
  get isFailing(): boolean {
    return this.#failures > 0
  }

  /** Resolves when no sync is running. */
  get settled(): Promise<void> | undefined {
    return this.#running
  }

  /**
   * Whether the data at risk of a power failure has reached its limit of size or age. @param unwrittenSince when the
   * oldest unwritten record was packed
   */
  isLate(unwrittenSince: number): boolean {
    if (this.#unsyncedBytes > unsyncedLimit) return true
    return performance.now() - Math.min(this.#syncingSince, this.#unsyncedSince, unwrittenSince) >= syncMs
  }

  /** Schedules a sync of the records that the last run left unsynced. */
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

  /** Schedules a sync, or starts one if much data was written. */
  plan(): void {
    if (this.#unsyncedBytes >= syncEarly && this.#failures === 0) void this.sync()
    else this.#planSoon()
  }

  /** All written records are finished, so a power failure would lose no events. */
  nothingToLose(): void {
    this.#unsyncedSince = Number.POSITIVE_INFINITY
    this.#syncingSince = Number.POSITIVE_INFINITY
    if (this.#failures > 0) for (const origin of this.#unsynced.splice(0)) origin.release(1, 'delivered')
  }

  /**
   * Schedules the next sync 500 ms after the start of the last one, and not before its end; earlier if data would otherwise
   * become durable too late.
   */
  #planSoon(): void {
    if (this.#running !== undefined || this.#timer !== undefined) return
    const now = performance.now()
    const regular = Math.max(now + minSyncMs, this.#began + syncMs)
    const latest = this.#unsyncedSince + syncMs - Math.min(2 * this.#took + minSyncMs, syncMs)
    const wait = this.#failures > 0 ? retryMs : Math.max(0, Math.min(regular, latest) - now)
    this.#timer = setTimeout(() => void this.sync(), wait)
  }

  /** Syncs now; if a sync is already running, only waits for its end. */
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
      // It is unknown how much of it is on the disk. Sources must resend events if they can, unless the events were delivered
      // meanwhile.
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

  /** The next attempt rewrites unfinished data. */
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
        ? 'Could not sync the disk buffer; trying again.'
        : 'Could not sync the disk buffer; its newest events are not durable.',
      { attempt },
    )
  }

  /** Gives up syncing the data before a position. */
  #noteUnsafe(end: Position): void {
    this.#unsafeUntil = end
    this.#covered = end
  }

  #writeAgain(): void {
    const { done } = this.#progress
    if (this.#store.writeAgain(isBefore(this.#covered, done) ? done : this.#covered)) return
    throw Object.assign(new Error('Data whose sync failed is read back with different content.'), {
      code: 'EIO',
    })
  }

  /** Schedules no further sync. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }
}
