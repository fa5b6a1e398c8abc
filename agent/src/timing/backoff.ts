// How long to wait after a failure: twice as long each time, each time a random part of it, from the start again after it went
// well for a while.

export interface BackoffOptions {
  readonly leastMs: number
  readonly mostMs: number
  /** Time without a failure after which the next one is a first one. */
  readonly resetMs: number
  readonly random?: () => number
  readonly now?: () => number
}

export class Backoff {
  readonly #options: BackoffOptions
  #failures = 0
  #last = Number.NEGATIVE_INFINITY

  constructor(options: BackoffOptions) {
    this.#options = options
  }

  /** Milliseconds to wait now. */
  next(): number {
    const { leastMs, mostMs, resetMs, random = Math.random, now = () => performance.now() } = this.#options
    if (now() - this.#last > resetMs) this.#failures = 0
    const limit = Math.min(mostMs, leastMs * 2 ** this.#failures)
    this.#failures = Math.min(this.#failures + 1, 30)
    this.#last = now()
    return random() * limit
  }
}
