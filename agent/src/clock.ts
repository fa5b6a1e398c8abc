// Time as whoever waits sees it, so that tests can turn it by hand.

export interface Clock {
  /** Milliseconds since any fixed moment; never goes back. */
  now(): number
  /** Runs an action once, later; what it returns cancels it. */
  after(ms: number, action: () => void): () => void
}

/** Longest time that a timer can hold. */
const longest = 2_147_483_647

export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, Math.min(Math.ceil(ms), longest))
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
