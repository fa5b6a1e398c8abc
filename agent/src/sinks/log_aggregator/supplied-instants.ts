// Instants for events without a timestamp: the current time, but always later than the previous one, so that entries
// keep the order of events.

import { Timestamp } from '../../event/timestamp.ts'
import type { Stream } from './streams.ts'

export class SuppliedInstants {
  readonly #isOrdered: boolean
  /** The last instant. */
  ms = 0
  ns = 0
  #now = 0

  /** @param isOrdered whether an instant must not precede the latest one of its stream */
  constructor(isOrdered: boolean) {
    this.#isOrdered = isOrdered
  }

  /** Reads the clock, once for each run of events. */
  begin(): void {
    this.#now = Date.now()
  }

  next(stream: Stream): Timestamp {
    this.advance(stream)
    return new Timestamp(this.ms, this.ns)
  }

  /** Computes the next instant in `ms` and `ns`. */
  advance(stream: Stream): void {
    let ms = this.#now
    let ns = 0
    if (ms < this.ms || (ms === this.ms && ns <= this.ns)) {
      ms = this.ms
      ns = this.ns + 1
    }
    if (this.#isOrdered && (ms < stream.latestMs || (ms === stream.latestMs && ns < stream.latestNs))) {
      ms = stream.latestMs
      ns = stream.latestNs
    }
    if (ns > 999_999) {
      ms++
      ns = 0
    }
    this.ms = ms
    this.ns = ns
  }
}
