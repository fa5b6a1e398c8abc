// Tracks how far a disk buffer is finished: in the order of their ids, all events before a position have a status. Records
// finished out of order wait here for earlier ones.

import type { Position } from './ledger.ts'
import type { RecordState } from './record-state.ts'
import type { Segment } from './segment.ts'

export class Progress {
  /** Position before which everything is finished. */
  done: Position
  /** Id of the first unfinished event. */
  doneId: number
  /** Unfinished records in the order of their ids, the oldest first. */
  readonly #records: RecordState[] = []

  constructor(done: Position, doneId: number) {
    this.done = { ...done }
    this.doneId = doneId
  }

  /** Whether the sink has reported a status for everything it received. */
  get isSettled(): boolean {
    return this.#records.length === 0
  }

  add(state: RecordState): void {
    this.#records.push(state)
  }

  /** Forgets a record that no file will hold; false if the sink never received any of it. */
  forget(state: RecordState): boolean {
    const index = this.#records.indexOf(state)
    if (index >= 0) this.#records.splice(index, 1)
    return index >= 0
  }

  /** Advances past the finished records. */
  advance(): readonly RecordState[] {
    let count = 0
    for (const state of this.#records) {
      if (state.parts > 0 || state.segment === undefined) break
      count++
      this.finish({ segment: state.segment.sequence, offset: state.end }, state.endId)
    }
    return count === 0 ? none : this.#records.splice(0, count)
  }

  /** Marks everything before a position as finished. */
  finish(done: Position, doneId: number): void {
    this.done = done
    this.doneId = doneId
  }

  /** Whether a segment without further writes is completely finished. */
  covers({ sequence, end }: Segment): boolean {
    const { segment, offset } = this.done
    return sequence < segment || (sequence === segment && end !== undefined && offset >= end)
  }
}

const none: readonly RecordState[] = []
