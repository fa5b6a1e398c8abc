// The limits of a source: one for each container, one for its pipeline, and those that all readers with the same key share.
// They apply to a chunk of lines before any other work.

import type { RateLimitOptions } from '../../component.ts'
import type { Slab } from '../../tailing/slab.ts'
import type { TailedFile } from '../../tailing/tailed-file.ts'
import type { ComponentEvents } from '../../telemetry/component-events.ts'
import { Limiter } from './limiter.ts'
import type { PodFile } from './pod-file.ts'

export interface ThrottleLimits {
  readonly perContainer: RateLimitOptions | undefined
  readonly pipeline: Limiter | undefined
  readonly shared: readonly Limiter[]
}

const ofContainer = { limit: 'container' }
const ofPipeline = { limit: 'pipeline' }

export class Throttle {
  readonly #limits: ThrottleLimits
  readonly #events: ComponentEvents
  readonly #isLimited: boolean

  constructor(limits: ThrottleLimits, events: ComponentEvents) {
    this.#limits = limits
    this.#events = events
    this.#isLimited = limits.perContainer !== undefined || limits.pipeline !== undefined || limits.shared.length > 0
  }

  /** The limiter of another file. */
  ofFile(): Limiter | undefined {
    const { perContainer } = this.#limits
    return perContainer === undefined ? undefined : new Limiter(perContainer)
  }

  /** Whether a file with this limiter is never read, because a limit that makes lines wait is 0. */
  isClosed(ofFile: Limiter | undefined): boolean {
    const { pipeline, shared } = this.#limits
    return [ofFile, pipeline, ...shared].some((each) => each?.onLimit === 'lag' && each.isClosed)
  }

  /** Removes the lines over a limit that drops; returns how long the whole source must wait. */
  admit(tailed: TailedFile<PodFile>, slab: Slab): number {
    if (!this.#isLimited) return 0
    const { pipeline, shared } = this.#limits
    const { limiter } = tailed.state
    const now = Date.now()
    for (const each of [limiter, pipeline]) {
      if (each?.onLimit !== 'drop') continue
      const dropped = slab.keep((start, end) => each.takes(end - start, now))
      if (dropped === 0) continue
      tailed.state.dropped += dropped
      this.#events.count('rate_limited_lines_total', dropped, each === limiter ? ofContainer : ofPipeline)
      this.#events.discarded(dropped, true, 'The limit of lines or bytes per second is reached.')
    }
    let bytes = 0
    for (let line = 0; line < slab.count; line++) bytes += (slab.ends[line] as number) - (slab.starts[line] as number)
    if (limiter?.onLimit === 'lag') {
      const waitMs = limiter.owe(slab.count, bytes, now)
      if (waitMs > 0) {
        tailed.state.heldUntil = now + waitMs
        tailed.waitUntil = tailed.state.heldUntil
      }
    }
    let waitMs = pipeline?.onLimit === 'lag' ? pipeline.owe(slab.count, bytes, now) : 0
    for (const each of shared) waitMs = Math.max(waitMs, each.owe(slab.count, bytes, now))
    return waitMs
  }
}
