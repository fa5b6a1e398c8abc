// Recovers the folder of a buffer after an earlier run, however that run ended. The ledger gives the start position, as far as the
// segments agree with it. Recovery reads only the beginning of each segment, and the part of the newest that may not be on the disk.

import { join } from 'node:path'
import type { DiskFiles } from './files.ts'
import { isBefore, Ledger, type LedgerState, ledgerName, type Position } from './ledger.ts'
import { recordBytes } from './record.ts'
import { type FoundSegment, findSegments, isUnreadable, recordsIn, type Segment } from './segment.ts'

/** Numbers of lost events, by the id of the first event after them. */
export type Gaps = Map<number, number>

export interface Recovered {
  readonly ledger: Ledger
  readonly segments: Segment[]
  readonly nextId: number
  readonly nextSequence: number
  /** Where reading continues, and the id of the first unfinished event. */
  readonly read: Position
  readonly readId: number
  /** Position up to which the data is known to be on the disk; later data may be in the page cache only. */
  readonly synced: Position
  readonly syncedId: number
  /** Whether no sync can make the data after that position safe. */
  readonly unsafe: boolean
  /** Known losses; reading finds losses inside segments. */
  readonly gaps: Gaps
  /** Why events are missing, for the log: one sentence for each location. */
  readonly findings: readonly { readonly code: string; readonly lost: number; readonly path: string }[]
}

export function recover(files: DiskFiles, folder: string): Recovered {
  const ledgerPath = join(folder, ledgerName)
  const { ledger, state, damaged } = Ledger.open(ledgerPath, files)
  try {
    return examine(files, folder, ledger, state, damaged)
  } catch (error) {
    ledger.close()
    throw error
  }
}

function examine(
  files: DiskFiles,
  folder: string,
  ledger: Ledger,
  state: LedgerState | undefined,
  damaged: boolean,
): Recovered {
  const findings: { code: string; lost: number; path: string }[] = []
  if (damaged) findings.push({ code: 'ledger', lost: 0, path: join(folder, ledgerName) })
  const found = findSegments(files, folder, state?.read.segment ?? 0)
  // Finished segments were about to be released when the last run ended.
  const segments = found.filter((segment) => state === undefined || segment.sequence >= state.read.segment)
  for (const segment of found) if (!segments.includes(segment)) files.unlinkSync(segment.path)

  const tail = readableTailOf(files, segments, state, findings)
  const begin = state?.readId ?? segments.find((segment) => segment.firstId !== undefined)?.firstId ?? 0
  const gaps: Gaps = new Map()
  // Unassigned ids can be used again, so the next id does not show how many events were lost here.
  const nextId = Math.max(tail.nextId, begin)
  const lostTail = Math.max(tail.promised, state?.nextId ?? 0) - nextId
  if (lostTail > 0) findings.push({ code: 'torn_tail', lost: lostTail, path: segments.at(-1)?.path ?? folder })

  let expected = begin
  let before: Segment | undefined
  for (const segment of segments) {
    const first = segment.firstId
    const follows = before === undefined ? state?.read.segment : before.sequence + 1
    if (first !== undefined && follows !== undefined && segment.sequence > follows) {
      if (before !== undefined) expected = Math.max(expected, endId(files, before) ?? expected)
      if (first > expected) {
        gaps.set(first, first - expected)
        findings.push({ code: 'missing_segment', lost: first - expected, path: segment.path })
      }
      expected = first
    }
    before = segment
  }
  const [oldest] = segments
  // Records delivered before they reached the disk may be missing there: new records are written at their position and must be
  // read.
  const read =
    state !== undefined && oldest?.sequence === state.read.segment
      ? { segment: oldest.sequence, offset: Math.min(state.read.offset, oldest.end ?? oldest.size) }
      : { segment: oldest?.sequence ?? 0, offset: 0 }
  return {
    ledger,
    segments,
    nextId,
    nextSequence: Math.max((segments.at(-1)?.sequence ?? -1) + 1, state === undefined ? 0 : state.synced.segment + 1),
    read,
    readId: begin,
    ...syncedOf(segments, state, nextId, begin),
    unsafe: state?.unsafe ?? segments.length > 0,
    gaps,
    findings,
  }
}

/** The found records that are known to be on the disk. */
function syncedOf(segments: readonly FoundSegment[], state: LedgerState | undefined, nextId: number, begin: number) {
  const newest = segments.at(-1)
  if (newest === undefined) return { synced: { segment: 0, offset: 0 }, syncedId: nextId }
  const end = { segment: newest.sequence, offset: newest.end ?? newest.size }
  if (state === undefined) return { synced: { segment: segments[0]?.sequence ?? 0, offset: 0 }, syncedId: begin }
  return isBefore(state.synced, end)
    ? { synced: state.synced, syncedId: state.syncedId }
    : { synced: end, syncedId: nextId }
}

/** The end of the newest segment; if the disk cannot read it, new records go to another segment. */
function readableTailOf(
  files: DiskFiles,
  segments: readonly FoundSegment[],
  state: LedgerState | undefined,
  findings: { code: string; lost: number; path: string }[],
) {
  try {
    return tailOf(files, segments, state)
  } catch (error) {
    // Without a ledger the assigned ids are unknown.
    if (!isUnreadable(error) || state === undefined) throw error
    findings.push({ code: 'unreadable', lost: 0, path: segments.at(-1)?.path ?? '' })
    return { nextId: state.nextId, promised: 0 }
  }
}

/** Finds the end of the newest segment and truncates the rest. */
function tailOf(files: DiskFiles, segments: readonly FoundSegment[], state: LedgerState | undefined) {
  const segment = segments.at(-1)
  if (segment === undefined) return { nextId: 0, promised: 0 }
  const certain =
    state?.synced.segment === segment.sequence && state.synced.offset <= segment.size ? state.synced : undefined
  let end = certain?.offset ?? 0
  let nextId = certain === undefined ? undefined : state?.syncedId
  let promised = 0
  for (const { header, offset, whole } of recordsIn(files, segment, end, true)) {
    promised = header.firstId + header.events
    if (!whole) continue
    end = offset + recordBytes(header)
    nextId = promised
  }
  // If the newest segments are empty, the ids continue at the end of an earlier one.
  for (let index = segments.length - 2; nextId === undefined && index >= 0; index--) {
    nextId = endId(files, segments[index] as FoundSegment)
  }
  if (segment.size > end) files.truncateSync(segment.path, end)
  segment.size = end
  segment.end = end
  return { nextId: nextId ?? 0, promised }
}

/** Id after the last event of a segment. */
function endId(files: DiskFiles, segment: Segment): number | undefined {
  let end: number | undefined
  for (const { header } of recordsIn(files, segment, 0, false)) end = header.firstId + header.events
  return end
}
