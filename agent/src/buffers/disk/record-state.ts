// The in-memory state of a record of a disk buffer: from its first event, or from its reading, until all its events have a
// status.

import type { Finalizer } from '../../event/finalizer.ts'
import type { RecordKind } from './record.ts'
import type { Segment } from './segment.ts'
import type { NewRecord } from './store.ts'

export interface RecordState {
  readonly kind: RecordKind
  events: number
  eventBytes: number
  diskBytes: number
  /** Number of batches that the sink holds, plus one while the record may get more. */
  parts: number
  /** Whether the sink received some of it: the record then counts as unacknowledged. */
  handedOn: boolean
  /** Id after its last event, and its end position: known once it is written. */
  endId: number
  segment: Segment | undefined
  end: number
}

/** A packed record that is not written yet. */
export interface Unwritten {
  readonly state: RecordState
  readonly record: NewRecord
  readonly origins: Finalizer[]
  /** When it was packed, on the clock of `performance`. */
  readonly since: number
}

export function newRecordState(kind: RecordKind): RecordState {
  return {
    kind,
    events: 0,
    eventBytes: 0,
    diskBytes: 0,
    parts: 1,
    handedOn: false,
    endId: -1,
    segment: undefined,
    end: 0,
  }
}

/** Whether an unwritten record was completely delivered from memory: it then need not be written. */
export function isDelivered(state: RecordState): boolean {
  return state.parts === 1 && state.handedOn
}
