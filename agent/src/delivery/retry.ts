// Determines the wait before a request is retried: the Fibonacci sequence, plus a random time of up to half of each wait, so that agents
// do not all retry at the same moment. It differs from `Backoff` (timing/), which doubles its waits and never ends, because the options
// `request.retry_*` promise this sequence, jitter on top of it, a maximum number of attempts, and support for `Retry-After`.

export interface RetryOptions {
  /** Maximum number of retries of one request. */
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

  /** Number of retries so far. */
  get retries(): number {
    return this.#used
  }

  /**
   * Milliseconds until the next attempt; undefined if no attempts are left.
   * @param atLeast the wait that the destination requested (`Retry-After`), capped at the maximum wait
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
