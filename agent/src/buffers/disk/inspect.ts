// Examines the folder of a disk buffer without changing it, even while an agent uses it; records being written at that
// moment may look damaged. It reads every record and checks its checksums.

import { existsSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type DiskFiles, diskFiles } from './files.ts'
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
  /** Id of the first event; absent if there is none. */
  readonly first_id?: number
  readonly last_id?: number
  /** Records whose events do not match their checksum. */
  readonly damaged_records: number
  /** Bytes outside of records: damaged headers, an incomplete end, or remains of an earlier use of the file. */
  readonly other_bytes: number
}

export interface InspectedBuffer {
  readonly path: string
  /** Whether an agent has the buffer open. */
  readonly in_use: boolean
  readonly ledger: LedgerState | 'damaged' | 'missing'
  readonly segments: readonly InspectedSegment[]
  readonly spare_bytes: number
  /** Events that no record contains any more, from the first unfinished one on. */
  readonly missing_events: number
  /** Number of unfinished events, and bytes of their records. */
  readonly lag_events: number
  readonly lag_bytes: number
  /** When the oldest unfinished event was written; absent if there is none. */
  readonly oldest_at?: string
}

export function inspectBuffer(path: string, files: DiskFiles = diskFiles): InspectedBuffer {
  const lock = join(path, lockName)
  const inUse = existsSync(lock) && isLocked(lock)
  const ledger = readLedger(files, path)
  const state = typeof ledger === 'string' ? undefined : ledger
  const segments: Writable<InspectedSegment>[] = []
  /** The ranges of missing ids, and the segment that should contain each. */
  const gaps: { from: number; to: number }[] = []
  const damages: { segment: number; from: number; to: number }[] = []
  let lag = 0
  let lagBytes = 0
  let oldest: number | undefined
  let expected = state?.readId
  for (const segment of findSegments(files, path, state?.read.segment ?? 0)) {
    let [records, events, recordsBytes] = [0, 0, 0]
    let first: number | undefined
    let last: number | undefined
    for (const { header, whole } of recordsIn(files, segment, 0, true)) {
      const bytes = recordBytes(header)
      recordsBytes += bytes
      records++
      const endId = header.firstId + header.events
      if (!whole) {
        damages.push({ segment: segments.length, from: header.firstId, to: endId })
        continue
      }
      events += header.events
      first ??= header.firstId
      last = endId - 1
      if (expected !== undefined && endId <= expected) continue
      if (expected !== undefined && header.firstId > expected) gaps.push({ from: expected, to: header.firstId })
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
      damaged_records: 0,
      other_bytes: segment.size - recordsBytes,
    })
  }
  if (state !== undefined && expected !== undefined && state.nextId > expected) {
    gaps.push({ from: expected, to: state.nextId })
  }
  // While an agent runs, records that it has just begun or finished may look damaged.
  const after = inUse ? readLedger(files, path) : undefined
  const doneId = typeof after === 'object' ? after.readId : 0
  const begunId = inUse ? (state?.nextId ?? 0) : Number.POSITIVE_INFINITY
  for (const { segment, from, to } of damages) {
    const inspected = segments[segment]
    if (inspected !== undefined && to > doneId && from < begunId) inspected.damaged_records++
  }
  const missing = gaps.reduce(
    (sum, { from, to }) => sum + Math.max(0, Math.min(to, begunId) - Math.max(from, doneId)),
    0,
  )
  return {
    path,
    in_use: inUse,
    ledger,
    segments,
    spare_bytes: statSync(join(path, spareName), { throwIfNoEntry: false })?.size ?? 0,
    missing_events: missing,
    lag_events: lag,
    lag_bytes: lagBytes,
    ...(oldest === undefined ? {} : { oldest_at: new Date(oldest).toISOString() }),
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Whether the folder contains a disk buffer. */
export function isBuffer(path: string): boolean {
  return existsSync(join(path, ledgerName)) || existsSync(join(path, lockName))
}

function readLedger(files: DiskFiles, path: string): InspectedBuffer['ledger'] {
  const file = join(path, ledgerName)
  if (!existsSync(file)) return 'missing'
  const { state } = Ledger.read(file, files)
  return state ?? 'damaged'
}
