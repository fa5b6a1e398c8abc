// How long to wait before a request is tried again: the Fibonacci sequence, and at random up to half of each wait on top, so that
// agents that failed together do not come back together. `Backoff` (timing/) doubles its waits and never ends. The waits here are a
// promise of the options `request.retry_*`: another sequence, jitter on top of it, an end, and `Retry-After`.

export interface RetryOptions {
  /** Most retries of one request. */
  readonly attempts: number
  readonly initialMs: number
  readonly maxMs: number
  readonly jitter: 'full' | 'none'
}

export class RetryBackoff {
  readonly #options: RetryOptions
  readonly #random: () => number
  #previous = 0
  #current: number
  #used = 0

  constructor(options: RetryOptions, random: () => number = Math.random) {
    this.#options = options
    this.#random = random
    this.#current = Math.min(options.initialMs, options.maxMs)
  }

  /** How often the request was tried again. */
  get retries(): number {
    return this.#used
  }

  /**
   * Milliseconds until the next attempt; undefined if no attempt is left.
   * @param atLeast the wait that the destination requested (`Retry-After`), capped at the longest wait
   */
  next(atLeast = 0): number | undefined {
    const { attempts, maxMs, jitter } = this.#options
    if (this.#used >= attempts) return undefined
    this.#used++
    const delay = this.#current
    const following = Math.min(this.#previous + this.#current, maxMs)
    this.#previous = this.#current
    this.#current = following
    const drawn = jitter === 'full' ? delay + (this.#random() * delay) / 2 : delay
    return Math.min(Math.max(drawn, atLeast), maxMs)
  }
}
