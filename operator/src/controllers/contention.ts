// Limits the corrections of an object that another client keeps changing: two operators for the same objects would write without end, and
// restart all pods each time.

import { monotonicNow } from '../kube/clock.ts'

/** How long corrections are counted. */
export const contendedMs = 600_000
/** So many corrections within that time are a contention. */
const minCorrections = 5
/** Interval of corrections during a contention. */
const correctionMs = 120_000

export class Corrections {
  #times: readonly number[] = []

  add(now = monotonicNow()): void {
    this.#times = [...this.#recent(now), now]
  }

  isContended(now = monotonicNow()): boolean {
    return this.#recent(now).length >= minCorrections
  }

  /** Milliseconds until the next correction. */
  waitMs(now = monotonicNow()): number {
    return this.isContended(now) ? Math.max(0, (this.#times.at(-1) ?? 0) + correctionMs - now) : 0
  }

  /** When the last correction was; 0: never. */
  get last(): number {
    return this.#times.at(-1) ?? 0
  }

  #recent(now: number): readonly number[] {
    return this.#times.filter((at) => now - at < contendedMs)
  }
}
