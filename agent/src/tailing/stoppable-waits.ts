// Waits for back-pressure that end when the agent stops.

import type { Logger } from '../telemetry/logger.ts'

export class StoppableWaits {
  readonly #signal: AbortSignal
  readonly #logger: Logger
  /** Functions that each end one wait. */
  readonly #abandons = new Set<() => void>()

  constructor(signal: AbortSignal, logger: Logger) {
    this.#signal = signal
    this.#logger = logger
  }

  /** Waits for back-pressure, but ends when the agent stops. */
  async unlessStopping(promise: Promise<void> | undefined): Promise<void> {
    if (promise === undefined || this.#signal.aborted) return
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#abandons.delete(done)
        resolve()
      }
      this.#abandons.add(done)
      promise.then(done, (error: unknown) => {
        this.#logger.error({ error }, 'Passing on lines failed.')
        done()
      })
    })
  }

  /** Ends all waits because the agent stops. */
  abandon(): void {
    for (const abandon of this.#abandons) abandon()
  }
}
