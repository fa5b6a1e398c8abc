// Limits how many requests may be in flight at once. A limit is notified of every attempt; a fixed limit ignores that.

/** The load of the destination, as inferred from an attempt. */
export type AttemptResult = 'success' | 'back_pressure' | 'other'

export interface ConcurrencyLimit {
  /** Maximum number of requests in flight. */
  readonly limit: number
  /** Reports the start of an attempt. `inFlight` includes it. */
  sent(inFlight: number): void
  /** Reports the end of an attempt that began at `start`. */
  answered(start: number, now: number, result: AttemptResult): void
}

export function fixedConcurrency(limit: number): ConcurrencyLimit {
  return { limit, sent() {}, answered() {} }
}
