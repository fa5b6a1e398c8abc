// Waits for a promise until a signal aborts or a time limit is reached. The promise itself continues.

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Settles with the promise, or resolves when the signal aborts. Leaves no listener behind. */
export async function untilAborted(promise: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
  if (promise === undefined || signal.aborted) return
  const { promise: stopped, resolve } = Promise.withResolvers<void>()
  const stop = () => resolve()
  signal.addEventListener('abort', stop)
  try {
    await Promise.race([promise, stopped])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** The promise's value; rejects with the signal's reason if the signal aborts first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    const end = () => signal.removeEventListener('abort', abort)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    promise.then(resolve, reject).finally(end)
  })
}

/** Whether a promise resolves within a time limit. Rejects if the promise does. */
export async function within(promise: Promise<unknown>, limitMs: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), limitMs)
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

/** A signal that aborts when the user presses Ctrl-C or the process receives SIGTERM. */
export function interrupted(): AbortSignal {
  const controller = new AbortController()
  const stop = () => controller.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  return controller.signal
}
