// Releases finished segments, oldest first, in the background. It syncs the ledger before each release, because the ledger must
// not refer to a removed segment.

import type { Progress } from './progress.ts'
import type { Segment } from './segment.ts'
import type { SegmentStore } from './store.ts'

export interface ReleaseHooks {
  /** Writes the ledger and syncs it. */
  syncLedger(): Promise<void>
  onFailed(error: unknown): void
  /** Called at the end of each attempt. */
  onEnded(): void
}

export class SegmentRelease {
  readonly #store: SegmentStore
  readonly #progress: Progress
  readonly #hooks: ReleaseHooks
  #running: Promise<void> | undefined

  constructor(store: SegmentStore, progress: Progress, hooks: ReleaseHooks) {
    this.#store = store
    this.#progress = progress
    this.#hooks = hooks
  }

  /** Resolves when no release is running. */
  get settled(): Promise<void> | undefined {
    return this.#running
  }

  /** Starts to release segments if the oldest one is finished. */
  start(): void {
    if (this.#oldestDone() !== undefined) this.#running ??= this.#release()
  }

  async #release(): Promise<void> {
    try {
      for (let segment = this.#oldestDone(); segment !== undefined; segment = this.#oldestDone()) {
        // Synced for each segment, because the next one may have finished during the last release.
        await this.#hooks.syncLedger()
        await this.#store.release(segment)
      }
    } catch (error) {
      this.#hooks.onFailed(error)
    }
    this.#running = undefined
    this.#hooks.onEnded()
  }

  #oldestDone(): Segment | undefined {
    const [oldest] = this.#store.segments
    if (oldest === undefined || oldest === this.#store.newest) return undefined
    return this.#progress.covers(oldest) ? oldest : undefined
  }
}
