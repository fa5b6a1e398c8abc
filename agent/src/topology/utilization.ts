// How busy components are. Everything runs on one thread, so a single stopwatch knows whose time it is: entering a component
// stops the time of the one that called it. Every five seconds the share of busy time enters a moving average.

import type { CpuAccount } from './fair-share.ts'

const weight = 0.9

export class UtilizationMeter {
  busyMs = 0
  /** Account of the pipeline, if several share the thread. */
  readonly account: CpuAccount | undefined
  /** Since when the component waits for its destination, which counts as busy. */
  waitingSince: number | undefined
  #average: number | undefined

  constructor(account?: CpuAccount) {
    this.account = account
  }

  get average(): number {
    return this.#average ?? 0
  }

  tick(now: number, elapsedMs: number): void {
    if (this.waitingSince !== undefined) {
      this.busyMs += now - this.waitingSince
      this.waitingSince = now
    }
    const share = elapsedMs <= 0 ? 0 : Math.min(1, this.busyMs / elapsedMs)
    this.busyMs = 0
    this.#average = this.#average === undefined ? share : weight * share + (1 - weight) * this.#average
  }
}

/** Time at a stretch that is worth a note. */
const longMs = 250

export class Stopwatch {
  #current: UtilizationMeter | undefined
  #since = 0
  #longest: UtilizationMeter | undefined
  #maxMs = longMs

  /** The component with the longest uninterrupted time since the last call, if it was long. */
  takeLongest(): UtilizationMeter | undefined {
    const longest = this.#longest
    this.#longest = undefined
    this.#maxMs = longMs
    return longest
  }

  #spent(meter: UtilizationMeter, ms: number): void {
    meter.busyMs += ms
    meter.account?.charge(ms)
    if (ms <= this.#maxMs) return
    this.#longest = meter
    this.#maxMs = ms
  }

  /** Time is this meter's from now on; returns the one whose it was, for `leave`. */
  enter(meter: UtilizationMeter): UtilizationMeter | undefined {
    const now = performance.now()
    const outer = this.#current
    if (outer !== undefined) this.#spent(outer, now - this.#since)
    this.#current = meter
    this.#since = now
    return outer
  }

  leave(outer: UtilizationMeter | undefined): void {
    const now = performance.now()
    if (this.#current !== undefined) this.#spent(this.#current, now - this.#since)
    this.#current = outer
    this.#since = now
  }
}
