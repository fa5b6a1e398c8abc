// Determines the wait after a failure: it doubles each time, up to a limit. Jitter makes a part of it random, so that clients that failed
// at the same time do not retry at the same time.

import { systemClock } from '../clock.ts'

/** The wait after a number of earlier failures, without jitter. */
export function doubledMs(failures: number, initialMs: number, maxMs: number): number {
  return Math.min(maxMs, initialMs * 2 ** Math.min(failures, 40))
}

/** `full`: a random time between zero and the wait. `half`: at least half of the wait. */
export type Jitter = 'full' | 'half' | 'none'

export function jittered(ms: number, jitter: Jitter, random: () => number = Math.random): number {
  if (jitter === 'none') return ms
  return jitter === 'full' ? random() * ms : ms / 2 + (random() * ms) / 2
}

export interface BackoffOptions {
  readonly initialMs: number
  readonly maxMs: number
  readonly jitter: Jitter
  /** Time without a failure after which the next failure counts as the first; by default never. */
  readonly resetMs?: number
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

  /** Counts a failure; returns the milliseconds to wait. */
  next(): number {
    const {
      initialMs,
      maxMs,
      jitter,
      resetMs = Number.POSITIVE_INFINITY,
      random,
      now = systemClock.now,
    } = this.#options
    if (now() - this.#last > resetMs) this.#failures = 0
    const waitMs = doubledMs(this.#failures++, initialMs, maxMs)
    this.#last = now()
    return jittered(waitMs, jitter, random)
  }

  /** Call after a success. The next failure then counts as the first. */
  reset(): void {
    this.#failures = 0
  }
}
