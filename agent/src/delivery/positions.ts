// Where the events of a request begin and end in its body. The memory of an ended request is used for the next one: it is outside the heap,
// and V8 collects the whole heap if there is much of it.

import { Spares } from '../event/spares.ts'

export interface Positions {
  readonly starts: Uint32Array
  readonly ends: Uint32Array
}

/** Memory for fewer events is not kept: a small request must not hold much of it. */
const minSpare = 1 << 10
const maxSpare = 1 << 14

const spares = new Spares<Positions>(16)

/** For at least this many events. The numbers are undefined. */
export function takePositions(events: number): Positions {
  const kept = events < minSpare ? undefined : spares.take()
  if (kept !== undefined && kept.ends.length >= events) return kept
  return { starts: new Uint32Array(events), ends: new Uint32Array(events) }
}

export function givePositions(positions: Positions): void {
  const { length } = positions.ends
  if (length >= minSpare && length <= maxSpare) spares.give(positions)
}
