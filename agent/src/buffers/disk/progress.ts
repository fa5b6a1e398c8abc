// How far a disk buffer is done: in the order of their ids, all events before a position have a status. Records that are done out
// of order wait here for those before them.

import type { Position } from './ledger.ts'
import type { RecordState } from './record-state.ts'
import type { Segment } from './segment.ts'

export class Progress {
  /** Everything before is done. */
  done: Position
  /** Id of the first event that is not done. */
  doneId: number
  /** Records in the order of their ids that are not all done; the first is the oldest. */
  readonly #records: RecordState[] = []

  constructor(done: Position, doneId: number) {
    this.done = { ...done }
    this.doneId = doneId
  }

  /** Whether the sink has answered for all that it got. */
  get isSettled(): boolean {
    return this.#records.length === 0
  }

  add(state: RecordState): void {
    this.#records.push(state)
  }

  /** Forgets a record that no file will hold; false if the sink never got any of it. */
  forget(state: RecordState): boolean {
    const index = this.#records.indexOf(state)
    if (index >= 0) this.#records.splice(index, 1)
    return index >= 0
  }

  /** Moves on over the records that are done. */
  advance(): readonly RecordState[] {
    let count = 0
    for (const state of this.#records) {
      if (state.parts > 0 || state.segment === undefined) break
      count++
      this.finish({ segment: state.segment.sequence, offset: state.end }, state.endId)
    }
    return count === 0 ? none : this.#records.splice(0, count)
  }

  /** Everything before a position is done. */
  finish(done: Position, doneId: number): void {
    this.done = done
    this.doneId = doneId
  }

  /** Whether all of a segment to which no more is written is done. */
  covers({ sequence, end }: Segment): boolean {
    const { segment, offset } = this.done
    return sequence < segment || (sequence === segment && end !== undefined && offset >= end)
  }
}

const none: readonly RecordState[] = []
