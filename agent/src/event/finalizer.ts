// End-to-end acknowledgement. A source makes one finalizer for each batch and receives one status for all its events.
// Holders count shares: splitting a batch, or handing it to several consumers, retains; finishing with it releases.

/** How an event ended. `dropped` is neutral: filtered out, or discarded by a failing transform. */
export type EventStatus = 'dropped' | 'delivered' | 'errored' | 'rejected'

/** The status that the source receives: the worst of its events. */
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

  /** Adds shares: one for each further holder. */
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
