// A batch of byte lines. Its count and size are known at once; events are created on first use. The slab returns to its
// pool when no reader can need it: all events have been created, or all have ended.

import { PenstockError } from '../errors.ts'
import { type Holders, type LogBatch, shareBetween } from '../event/batch.ts'
import type { Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import type { Slab, SlabPool } from './slab.ts'

/** How the lines of one file become events. */
export interface LineShape {
  /** Estimated size of an event, not counting the bytes of its line. */
  readonly overhead: number
  event(slab: Slab, line: number): LogEvent
}

/** The lines of one slab, shared by all slices of a batch. */
export class Lines {
  #slab: Slab | undefined
  readonly #shape: LineShape
  readonly #pool: SlabPool
  #events: LogEvent[] | undefined
  /** Whether another holder may read the events after the finalizer has ended. */
  shared = false

  constructor(slab: Slab, shape: LineShape, pool: SlabPool) {
    this.#slab = slab
    this.#shape = shape
    this.#pool = pool
  }

  get events(): LogEvent[] {
    if (this.#events !== undefined) return this.#events
    const slab = this.#slab
    if (slab === undefined) throw new PenstockError('PEN_INTERNAL', 'A batch of lines was read after it ended.')
    const events = new Array<LogEvent>(slab.count)
    for (let line = 0; line < events.length; line++) events[line] = this.#shape.event(slab, line)
    this.#events = events
    this.#release()
    return events
  }

  /** Estimated size of the events `[from, to)`. */
  bytes(from: number, to: number): number {
    let bytes = 0
    if (this.#slab === undefined) {
      const events = this.events
      for (let index = from; index < to; index++) bytes += (events[index] as LogEvent).size
      return bytes
    }
    const { starts, ends } = this.#slab
    for (let line = from; line < to; line++) bytes += (ends[line] as number) - (starts[line] as number)
    return bytes + (to - from) * this.#shape.overhead
  }

  /** All events have ended. */
  ended(): void {
    if (!this.shared) this.#release()
  }

  /** The batch has been passed on: if it was not read yet, the bytes must be kept. The slab's reader calls this. */
  settle(): void {
    const slab = this.#slab
    if (slab === undefined) return
    // A few waiting lines must not keep a large buffer in memory.
    if (slab.isSparse || slab.isView) this.#slab = slab.compacted()
    else slab.held = true
  }

  #release(): void {
    const slab = this.#slab
    this.#slab = undefined
    // If the slab is not held, its reader still owns it and reuses it.
    if (slab?.held === true) this.#pool.give(slab)
  }
}

export class LineBatch implements LogBatch {
  readonly type = 'log'
  readonly count: number
  readonly finalizer: Finalizer
  readonly #lines: Lines
  readonly #from: number
  #bytes = -1
  shared = false
  holders: Holders | undefined

  constructor(lines: Lines, from: number, to: number, finalizer: Finalizer) {
    this.#lines = lines
    this.#from = from
    this.count = to - from
    this.finalizer = finalizer
  }

  get bytes(): number {
    if (this.#bytes < 0) this.#bytes = this.#lines.bytes(this.#from, this.#from + this.count)
    return this.#bytes
  }

  get events(): LogEvent[] {
    const events = this.#lines.events
    return this.count === events.length ? events : events.slice(this.#from, this.#from + this.count)
  }

  slice(from: number, to: number): LineBatch {
    const part = new LineBatch(this.#lines, this.#from + from, this.#from + to, this.finalizer)
    part.shared = this.shared
    return part
  }

  share(): LineBatch {
    this.#lines.shared = true
    const other = new LineBatch(this.#lines, this.#from, this.#from + this.count, this.finalizer)
    shareBetween(this, other)
    return other
  }
}
