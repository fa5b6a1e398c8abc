// Limits the number of requests in a fixed time window, which begins with its first request.

export class RateLimit {
  readonly #max: number
  readonly #windowMs: number
  #windowEnd = Number.NEGATIVE_INFINITY
  #taken = 0

  constructor(max: number, windowMs: number) {
    this.#max = max
    this.#windowMs = windowMs
  }

  /** Milliseconds until a request may start; 0 if it may start now. */
  wait(now: number): number {
    return now >= this.#windowEnd || this.#taken < this.#max ? 0 : this.#windowEnd - now
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
