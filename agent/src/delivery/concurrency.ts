// How many requests may be under way at once. The limit hears of every attempt; a fixed one does not care.

/** The load of the destination, as an attempt shows it. */
export type AttemptResult = 'success' | 'back_pressure' | 'other'

export interface ConcurrencyLimit {
  /** Requests that may be under way. */
  readonly limit: number
  /** An attempt begins while this many requests, this one included, are under way. */
  sent(inFlight: number): void
  /** An attempt that began at `start` has ended. */
  answered(start: number, now: number, result: AttemptResult): void
}

export function fixedConcurrency(limit: number): ConcurrencyLimit {
  return { limit, sent() {}, answered() {} }
}
