// At most this many requests in a fixed window, which begins with the first request in it.

export class RateLimit {
  readonly #most: number
  readonly #windowMs: number
  #windowEnd = Number.NEGATIVE_INFINITY
  #taken = 0

  constructor(most: number, windowMs: number) {
    this.#most = most
    this.#windowMs = windowMs
  }

  /** Milliseconds until a request may start; 0: now. */
  wait(now: number): number {
    return now >= this.#windowEnd || this.#taken < this.#most ? 0 : this.#windowEnd - now
  }

  /** Counts a request that starts. */
  take(now: number): void {
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + this.#windowMs
      this.#taken = 0
    }
    this.#taken++
  }
}
