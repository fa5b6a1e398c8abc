// A clock that is turned by hand, for tests: time passes from one timer to the next, and everything that a timer set off has
// settled before the next one.

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

  /** Lets time pass. */
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

/** Resolves when every promise that could continue has done so. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
