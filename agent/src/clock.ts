// The clock for code that waits. Tests replace it with a manual one.

export interface Clock {
  /** Milliseconds since an arbitrary fixed moment. It never decreases. */
  now(): number
  /** Runs an action once, after a delay. The returned function cancels it. */
  after(ms: number, action: () => void): () => void
}

/** Maximum delay of a timer in Node, almost 25 days. A timer with a longer delay would fire immediately. */
const maxTimerMs = 2_147_483_647

/** Converts any delay, including infinity, to one that timers accept: a whole number up to the maximum. */
export const timerMs = (ms: number): number => Math.min(Math.ceil(ms), maxTimerMs)

/** A signal that aborts after a delay. */
export const timeoutSignal = (ms: number): AbortSignal => AbortSignal.timeout(timerMs(ms))

export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, timerMs(ms))
    return () => clearTimeout(timer)
  },
}

/** Resolves after a delay, or as soon as the signal aborts. */
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
