// The positions at which the events of a request begin and end in its body. The next request reuses the memory of an ended one. This memory
// is outside the heap, and V8 would start a collection of the whole heap if many requests allocated it.

import { Spares } from '../event/spares.ts'

export interface Positions {
  readonly starts: Uint32Array
  readonly ends: Uint32Array
}

/** Smaller arrays are not kept, and a small request gets a new one, so that it never holds a large one. */
const minSpare = 1 << 10
const maxSpare = 1 << 14

const spares = new Spares<Positions>(16)

/** Returns arrays for at least this many events. Their initial content is undefined. */
export function takePositions(events: number): Positions {
  const kept = events < minSpare ? undefined : spares.take()
  if (kept !== undefined && kept.ends.length >= events) return kept
  return { starts: new Uint32Array(events), ends: new Uint32Array(events) }
}

export function givePositions(positions: Positions): void {
  const { length } = positions.ends
  if (length >= minSpare && length <= maxSpare) spares.give(positions)
}
