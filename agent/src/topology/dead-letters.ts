// Passes events that destinations reject permanently to the dead letter sink of their pipeline. The events themselves no longer exist
// then: only the sink's output for each remains. Delivery is best effort: it uses no memory while that sink is blocked, and blocks
// nothing.

import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { TokenBucket } from '../timing/token-bucket.ts'
import type { SinkNode, TopologyContext } from './build.ts'

/** The dead letter target of one sink. */
export interface DeadLetterTarget {
  readonly sink: SinkNode
  /** Unlimited if not given. */
  readonly perSecond: number | undefined
}

export class DeadLetters {
  readonly #id: string
  readonly #type: string
  readonly #context: TopologyContext
  #bucket: TokenBucket | undefined
  /** Whether the target's buffer is full: events that arrive meanwhile are not accepted. */
  #waiting = false

  constructor(id: string, type: string, context: TopologyContext) {
    this.#id = id
    this.#type = type
    this.#context = context
  }

  /** @param written returns the text written for the first events, up to this number */
  take(events: number, written: (events: number) => readonly string[], message: string): void {
    const target = this.#context.bundle?.deadLetter?.(this.#id)
    if (target === undefined || this.#waiting || !target.sink.config.declaration.accepts.includes('log')) return
    const count = Math.min(events, this.#room(target.perSecond))
    if (count === 0) return
    this.#bucket?.take(count)
    const { messageKey, timestampKey, metadataKey } = this.#context.globals.logSchema
    const facts = { reason: 'rejected', component_id: this.#id, component_type: this.#type, component_kind: 'sink' }
    const timestamp = Timestamp.now()
    const letters = written(count).map(
      (text) =>
        new LogEvent({
          [messageKey]: text,
          [timestampKey]: timestamp,
          [metadataKey]: { dropped: { ...facts, message } },
        }),
    )
    // The source has already received the status of each event.
    const wait = target.sink.buffer.write(logBatch(letters, new Finalizer()))
    if (wait === undefined) return
    this.#waiting = true
    const go = () => {
      this.#waiting = false
    }
    wait.then(go, go)
  }

  #room(perSecond: number | undefined): number {
    if (perSecond === undefined) {
      this.#bucket = undefined
      return Number.POSITIVE_INFINITY
    }
    const now = performance.now()
    if (this.#bucket?.perSecond !== perSecond) {
      const capacity = Math.max(1, perSecond)
      const left = this.#bucket?.fill(now) ?? capacity
      this.#bucket = new TokenBucket(perSecond, capacity, Math.min(capacity, left)) // a new limit grants no second burst
    }
    return Math.floor(this.#bucket.fill(now))
  }
}
