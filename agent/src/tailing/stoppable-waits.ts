// Waits for back-pressure that end when the agent stops.

import type { Logger } from '../telemetry/logger.ts'

export class StoppableWaits {
  readonly #signal: AbortSignal
  readonly #logger: Logger
  /** Each ends one wait. */
  readonly #abandons = new Set<() => void>()

  constructor(signal: AbortSignal, logger: Logger) {
    this.#signal = signal
    this.#logger = logger
  }

  /** Waits for back-pressure, but no longer than until the agent stops. */
  async unlessStopping(promise: Promise<void> | undefined): Promise<void> {
    if (promise === undefined || this.#signal.aborted) return
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#abandons.delete(done)
        resolve()
      }
      this.#abandons.add(done)
      promise.then(done, (error: unknown) => {
        this.#logger.error({ error }, 'Handing on lines failed.')
        done()
      })
    })
  }

  /** Ends all waits: the agent stops. */
  abandon(): void {
    for (const abandon of this.#abandons) abandon()
  }
}
