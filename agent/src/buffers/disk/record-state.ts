// A record of a disk buffer as memory knows it: from its first event, or from its reading, until all its events have a status.

import type { Finalizer } from '../../event/finalizer.ts'
import type { RecordKind } from './record.ts'
import type { Segment } from './segment.ts'
import type { NewRecord } from './store.ts'

export interface RecordState {
  readonly kind: RecordKind
  events: number
  eventBytes: number
  diskBytes: number
  /** Batches in the sink's hands, and one share while the record may get more. */
  parts: number
  /** The sink has got some of it: the record is among those that are not acknowledged. */
  handedOn: boolean
  /** Id of the event behind its last, and where it ends: known when it is written. */
  endId: number
  segment: Segment | undefined
  end: number
}

/** A record that is packed and not written yet. */
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

/** Whether all of an unwritten record was delivered from memory: there is nothing left to keep. */
export function isDelivered(state: RecordState): boolean {
  return state.parts === 1 && state.handedOn
}
