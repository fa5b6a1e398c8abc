// Measures how busy components are. All components run on one thread, so a single stopwatch suffices: entering a component
// pauses the time of its caller. Every five seconds, the busy fraction updates a moving average.

import type { CpuAccount } from './fair-share.ts'

const weight = 0.9

export class UtilizationMeter {
  busyMs = 0
  /** Account of the pipeline, if several share the thread. */
  readonly account: CpuAccount | undefined
  /** When the component started to wait for its destination, which counts as busy. */
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

/** Minimum duration of an uninterrupted run to report. */
const longMs = 250

export class Stopwatch {
  #current: UtilizationMeter | undefined
  #since = 0
  #longest: UtilizationMeter | undefined
  #maxMs = longMs

  /** The component with the longest uninterrupted run since the last call, if it was long. */
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

  /** Starts to charge this meter; returns the previous one, for `leave`. */
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
