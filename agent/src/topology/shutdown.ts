// The time limit of a stop, and the components that it still waits for.

import { counted } from '../counted.ts'
import type { Logger } from '../telemetry/logger.ts'
import { within } from '../timing/wait.ts'

const progressMs = 5000

export class Shutdown {
  /** Ids of the components that have not ended. */
  readonly pending = new Set<string>()
  readonly #limitMs: number | undefined
  readonly #logger: Logger
  readonly #startedAt = performance.now()
  readonly #progress: NodeJS.Timeout
  #timer: NodeJS.Timeout | undefined

  /** @param limitMs undefined: no limit */
  constructor(limitMs: number | undefined, logger: Logger) {
    this.#limitMs = limitMs
    this.#logger = logger
    this.#progress = setInterval(() => this.#report(), progressMs)
  }

  /** Counts a component as pending until `done` resolves. */
  async hold(id: string, done: Promise<void>): Promise<void> {
    this.pending.add(id)
    await done
    this.pending.delete(id)
  }

  /** Whether a promise resolves within a fraction of the limit; without a limit, waits for it. */
  async within(promise: Promise<unknown>, share: number): Promise<boolean> {
    if (this.#limitMs !== undefined) return within(promise, this.#limitMs * share)
    await promise
    return true
  }

  /** Calls `run` after a delay, unless the stop has ended by then. */
  after(ms: number, run: () => void): void {
    this.#timer = setTimeout(run, ms)
  }

  endProgress(): void {
    clearInterval(this.#progress)
    clearTimeout(this.#timer)
  }

  #report(): void {
    const leftMs = this.#limitMs === undefined ? undefined : this.#limitMs - (performance.now() - this.#startedAt)
    this.#logger.info(
      {
        remaining_components: [...this.pending].join(', '),
        time_remaining: leftMs === undefined ? 'no limit' : `${counted(Math.round(leftMs / 1000), 'second')} left`,
      },
      'Shutting down... Waiting on running components.',
    )
  }
}
