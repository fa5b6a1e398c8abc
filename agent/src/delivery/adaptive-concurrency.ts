// Finds how many concurrent requests a destination can handle. The limit rises by one while round-trip times do not grow, and shrinks by
// a factor when they grow or when the destination signals back-pressure. It is adjusted once per average round-trip time.

import type { AttemptResult, ConcurrencyLimit } from './concurrency.ts'

export interface AdaptiveOptions {
  readonly initial_concurrency: number
  readonly max_concurrency_limit: number
  readonly decrease_ratio: number
  readonly ewma_alpha: number
  readonly rtt_deviation_scale: number
}

/** Receives measurements of the limit; times are in milliseconds. */
export interface AdaptiveObserver {
  inFlight?(requests: number): void
  observedRtt?(ms: number): void
  adjusted?(state: {
    readonly limit: number
    readonly averageMs: number | undefined
    readonly pastMeanMs: number
    readonly reachedLimit: boolean
    readonly backPressure: boolean
  }): void
}

export class AdaptiveConcurrency implements ConcurrencyLimit {
  readonly #options: AdaptiveOptions
  readonly #observer: AdaptiveObserver
  #limit: number
  #reachedLimit = false
  #backPressure = false
  #sum = 0
  #count = 0
  /** Moving average of round-trip times, and its variance; undefined until the first measurement. */
  #mean: number | undefined
  #variance = 0
  #nextUpdate = 0

  constructor(options: AdaptiveOptions, observer: AdaptiveObserver = {}) {
    this.#options = options
    this.#observer = observer
    this.#limit = Math.min(options.initial_concurrency, options.max_concurrency_limit)
  }

  get limit(): number {
    return this.#limit
  }

  sent(inFlight: number): void {
    if (inFlight >= this.#limit) this.#reachedLimit = true
    this.#observer.inFlight?.(inFlight)
  }

  answered(start: number, now: number, result: AttemptResult): void {
    const rtt = now - start
    if (result === 'back_pressure') this.#backPressure = true
    if (result === 'success') {
      this.#sum += rtt
      this.#count++
      this.#observer.observedRtt?.(rtt)
      if (this.#mean === undefined) {
        this.#mean = rtt
        this.#variance = 0
        this.#nextUpdate = now + rtt
        return
      }
    }
    if (this.#mean !== undefined && now >= this.#nextUpdate) this.#adjust(now, this.#mean)
  }

  #adjust(now: number, mean: number): void {
    const { max_concurrency_limit, decrease_ratio, ewma_alpha, rtt_deviation_scale } = this.#options
    // Rounded, so that a rounding error in the last bit does not reduce the limit although all times are equal.
    const average = this.#count === 0 ? undefined : rounded(this.#sum / this.#count)
    const threshold = Math.sqrt(this.#variance) * rtt_deviation_scale
    if (
      this.#limit < max_concurrency_limit &&
      this.#reachedLimit &&
      !this.#backPressure &&
      average !== undefined &&
      average <= rounded(mean)
    ) {
      this.#limit++
    } else if (
      this.#limit > 1 &&
      (this.#backPressure || (average !== undefined && average >= rounded(mean + threshold)))
    ) {
      this.#limit = Math.max(1, Math.floor(this.#limit * decrease_ratio))
    }
    this.#observer.adjusted?.({
      limit: this.#limit,
      averageMs: average,
      pastMeanMs: mean,
      reachedLimit: this.#reachedLimit,
      backPressure: this.#backPressure,
    })
    if (average !== undefined) {
      const difference = average - mean
      this.#mean = mean + ewma_alpha * difference
      this.#variance = (1 - ewma_alpha) * (this.#variance + ewma_alpha * difference * difference)
    }
    this.#nextUpdate = now + (this.#mean ?? mean)
    this.#sum = 0
    this.#count = 0
    this.#reachedLimit = false
    this.#backPressure = false
  }
}

/** Rounds to nanoseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1e6) / 1e6
}
