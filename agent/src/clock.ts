// Time for code that waits, so that tests can set it by hand.

export interface Clock {
  /** Milliseconds since any fixed moment; never goes back. */
  now(): number
  /** Runs an action once, later; what it returns cancels it. */
  after(ms: number, action: () => void): () => void
}

/** Longest time that a timer can hold, almost 25 days; a timer of Node with a longer time ends at once. */
const longest = 2_147_483_647

/** A time in milliseconds, any from nothing to infinity, as timers take it: whole, and no longer than they can hold. */
export const timerMs = (ms: number): number => Math.min(Math.ceil(ms), longest)

/** A signal that is aborted after the time. */
export const timeoutSignal = (ms: number): AbortSignal => AbortSignal.timeout(timerMs(ms))

export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, timerMs(ms))
    return () => clearTimeout(timer)
  },
}

/** Resolves after the time, or at once when the signal aborts. */
export function pause(ms: number, signal: AbortSignal, clock: Clock = systemClock): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const end = () => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    signal.addEventListener('abort', end)
  })
}
