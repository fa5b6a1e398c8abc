// A manual clock for tests: time advances from one timer to the next, and all effects of a timer settle before the next one.

import type { Clock } from '../clock.ts'

interface Timer {
  readonly at: number
  readonly order: number
  readonly action: () => void
}

export class FakeClock implements Clock {
  #now = 0
  #order = 0
  readonly #timers = new Set<Timer>()

  now(): number {
    return this.#now
  }

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.#now + ms, order: this.#order++, action }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Advances the time. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    await settled()
    for (;;) {
      let next: Timer | undefined
      for (const timer of this.#timers) {
        if (timer.at > end) continue
        if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) next = timer
      }
      if (next === undefined) break
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.action()
      await settled()
    }
    this.#now = end
  }
}

/** Resolves when all pending promise callbacks have run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
