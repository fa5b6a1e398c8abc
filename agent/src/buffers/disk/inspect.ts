// Looks at the folder of a disk buffer without changing it, also while an agent uses it: what is then being written may look
// torn. Every record is read and compared with its checksums.

import { existsSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Ledger, type LedgerState, ledgerName } from './ledger.ts'
import { isLocked, lockName } from './lock.ts'
import { recordBytes } from './record.ts'
import { findSegments, recordsIn, spareName } from './segment.ts'

export interface InspectedSegment {
  readonly file: string
  readonly sequence: number
  readonly bytes: number
  readonly records: number
  readonly events: number
  /** Of the first and the last event; absent if it holds none. */
  readonly first_id?: number
  readonly last_id?: number
  /** Records whose events are not as they were written. */
  readonly damaged_records: number
  /** Bytes that are no records: damaged headers, a torn end, or what is left of an earlier use of the file. */
  readonly other_bytes: number
}

export interface InspectedBuffer {
  readonly path: string
  /** Whether an agent has the buffer open. */
  readonly in_use: boolean
  readonly ledger: LedgerState | 'damaged' | 'missing'
  readonly segments: readonly InspectedSegment[]
  readonly spare_bytes: number
  /** Events that no record holds any more, between the first that is not done and the next. */
  readonly missing_events: number
  /** Events that are not done yet, and bytes of their records. */
  readonly lag_events: number
  readonly lag_bytes: number
  /** When the oldest of them was written; absent if there is none. */
  readonly oldest_at?: string
}

export function inspectBuffer(path: string): InspectedBuffer {
  const ledger = readLedger(path)
  const state = typeof ledger === 'string' ? undefined : ledger
  const segments: InspectedSegment[] = []
  let lag = 0
  let lagBytes = 0
  let oldest: number | undefined
  let expected = state?.readId
  let missing = 0
  for (const segment of findSegments(path, state?.read.segment ?? 0)) {
    let [records, events, damaged, recordsBytes] = [0, 0, 0, 0]
    let first: number | undefined
    let last: number | undefined
    for (const { header, whole } of recordsIn(segment, 0, true)) {
      const bytes = recordBytes(header)
      recordsBytes += bytes
      records++
      if (!whole) {
        damaged++
        continue
      }
      events += header.events
      first ??= header.firstId
      const endId = header.firstId + header.events
      last = endId - 1
      if (expected !== undefined && endId <= expected) continue
      if (expected !== undefined && header.firstId > expected) missing += header.firstId - expected
      expected = endId
      lag += header.events
      lagBytes += bytes
      oldest ??= header.writtenAt
    }
    segments.push({
      file: basename(segment.path),
      sequence: segment.sequence,
      bytes: segment.size,
      records,
      events,
      ...(first === undefined || last === undefined ? {} : { first_id: first, last_id: last }),
      damaged_records: damaged,
      other_bytes: segment.size - recordsBytes,
    })
  }
  if (state !== undefined && expected !== undefined) missing += Math.max(0, state.nextId - expected)
  const spare = join(path, spareName)
  const lock = join(path, lockName)
  return {
    path,
    in_use: existsSync(lock) && isLocked(lock),
    ledger,
    segments,
    spare_bytes: existsSync(spare) ? statSync(spare).size : 0,
    missing_events: missing,
    lag_events: lag,
    lag_bytes: lagBytes,
    ...(oldest === undefined ? {} : { oldest_at: new Date(oldest).toISOString() }),
  }
}

/** Whether the folder is that of a disk buffer. */
export function isBuffer(path: string): boolean {
  return existsSync(join(path, ledgerName)) || existsSync(join(path, lockName))
}

function readLedger(path: string): InspectedBuffer['ledger'] {
  const file = join(path, ledgerName)
  if (!existsSync(file)) return 'missing'
  const { state } = Ledger.read(file)
  return state ?? 'damaged'
}
