// End-to-end acknowledgement. A source makes one finalizer for each batch and receives one status for all its events.
// It counts shares: splitting a batch or passing it to several consumers retains shares, and finishing a batch releases them.

/** How an event ended. `dropped` is neutral: the event was filtered out, or a failing transform discarded it. */
export type EventStatus = 'dropped' | 'delivered' | 'errored' | 'rejected'

/** The status that the source receives: the worst status of all events in the batch. */
export type BatchStatus = 'delivered' | 'errored' | 'rejected'

const rank = { dropped: 0, delivered: 0, errored: 1, rejected: 2 } as const
const names: readonly BatchStatus[] = ['delivered', 'errored', 'rejected']

export class Finalizer {
  #shares = 1
  #worst = 0
  #finalized: ((status: BatchStatus) => void) | undefined

  /** @param finalized called once, when the last share is released; must not throw */
  constructor(finalized?: (status: BatchStatus) => void) {
    this.#finalized = finalized
  }

  /** Adds shares, one for each additional holder. */
  retain(shares: number): void {
    this.#shares += shares
  }

  /** Returns shares with their outcome. */
  release(shares: number, status: EventStatus): void {
    const worst = rank[status]
    if (worst > this.#worst) this.#worst = worst
    this.#shares -= shares
    if (this.#shares <= 0) {
      const finalized = this.#finalized
      this.#finalized = undefined
      finalized?.(names[this.#worst] as BatchStatus)
    }
  }
}
