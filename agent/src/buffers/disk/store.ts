// The writing side of a disk buffer: appends records to the newest segment, starts a new segment when it is full, syncs in the
// background and releases segments. Syncs and releases run on the thread pool, so a slow disk does not block other work. When
// `append` resolves, the record is in the page cache: it survives a process crash from then on, and a machine crash after the
// next `sync`.

import { constants } from 'node:fs'
import { join } from 'node:path'
import { crc32c } from '../../formats/crc32c.ts'
import type { DiskFiles } from './files.ts'
import type { Position } from './ledger.ts'
import type { PackedRecord } from './packing/record-memory.ts'
import { headerBytes, type RecordKind, recordBytes, recordFormat, writeHeader } from './record.ts'
import { maxSegments, openIfThere, recordsIn, type Segment, segmentName, spareName } from './segment.ts'

export interface NewRecord {
  readonly kind: RecordKind
  readonly events: number
  readonly eventBytes: number
  readonly packed: PackedRecord
}

/** Location of a record. */
export interface RecordPlace {
  readonly segment: Segment
  readonly end: number
  readonly firstId: number
}

export interface StoreState {
  readonly files: DiskFiles
  readonly folder: string
  /** The existing segments, oldest first; writing continues in the last one if its `end` is known. */
  readonly segments: Segment[]
  readonly nextId: number
  /** Sequence number of the next new segment. */
  readonly nextSequence: number
  /** Position up to which the data is known to be on the disk. */
  readonly synced: Position
  readonly maxSize: number
  /** Maximum size of a segment. */
  readonly segmentLimit: number
}

const padding = Buffer.alloc(8)
const copyBytes = 1 << 20

export class SegmentStore {
  readonly files: DiskFiles
  readonly segments: Segment[]
  readonly segmentLimit: number
  nextId: number
  maxSize: number
  readonly #folder: string
  readonly #folderFile: number
  #nextSequence: number
  /** Total size of all files. */
  #used: number
  /** A finished file that becomes the next segment, because overwriting costs half as much as extending a new file. */
  #spare = 0
  #file: number | undefined
  /** Whether the newest segment accepts no more writes. */
  #broken = false
  /** Files written since the last sync, and whether to close each after it. */
  readonly #dirty = new Map<number, boolean>()
  /** Segments to be synced that have no open file. */
  readonly #unsynced = new Set<Segment>()
  #folderDirty = true

  constructor(state: StoreState) {
    this.files = state.files
    this.segmentLimit = state.segmentLimit
    this.#folder = state.folder
    this.segments = state.segments
    this.nextId = state.nextId
    this.maxSize = state.maxSize
    this.#nextSequence = state.nextSequence
    this.#used = state.segments.reduce((sum, segment) => sum + segment.size, 0)
    // After a power failure, a spare file may contain records with the number of a segment that is about to be created
    // again.
    state.files.rmSync(join(state.folder, spareName), { force: true })
    // Records written but not synced by the last run may be in the page cache only.
    for (const segment of this.segments) {
      if (segment.sequence < state.synced.segment) continue
      const isBehind = segment.sequence > state.synced.segment || (segment.end ?? segment.size) > state.synced.offset
      if (isBehind) this.#unsynced.add(segment)
    }
    const last = this.newest
    // An agent that only reads the older format rejects a file by its first record.
    const isCurrent = (last?.format ?? recordFormat) === recordFormat
    if (last?.end !== undefined && isCurrent) this.#file = this.files.openSync(last.path, 'r+')
    this.#folderFile = this.files.openSync(state.folder, constants.O_RDONLY)
  }

  get newest(): Segment | undefined {
    return this.segments.at(-1)
  }

  /** End of the records. */
  get end(): Position {
    const { newest } = this
    return { segment: newest?.sequence ?? 0, offset: newest?.end ?? newest?.size ?? 0 }
  }

  /** Whether the last run left data that may not be on the disk. */
  get hasUnsynced(): boolean {
    return this.#unsynced.size > 0
  }

  /** Whether a record of about this size fits. */
  fits(bytes: number): boolean {
    const { newest } = this
    if (newest?.end !== undefined && newest.end + bytes <= newest.size) return true
    return this.#used - this.#spare + bytes <= this.maxSize
  }

  /**
   * Appends as many records as fit in one segment, in one write; returns their locations, or none if there is no space for the
   * first. Rejects if the disk refuses the write. Call it again only after it has settled.
   */
  async append(records: readonly NewRecord[], writtenAt: number): Promise<RecordPlace[]> {
    const length = recordBytes(lengthsOf(records[0] as NewRecord))
    let segment = this.newest
    if (
      this.#file === undefined ||
      this.#broken ||
      segment?.end === undefined ||
      segment.end + length > this.segmentLimit
    ) {
      segment = this.#begin(length)
      if (segment === undefined) return []
    } else if (!this.#makeRoom(segment.end + length - segment.size)) {
      return []
    }
    const file = this.#file as number
    const start = segment.end as number
    const places: RecordPlace[] = []
    const pieces: Buffer[] = []
    let end = start
    let firstId = this.nextId
    for (const record of records) {
      const lengths = lengthsOf(record)
      const next = end + recordBytes(lengths)
      if (places.length > 0 && (next > this.segmentLimit || this.#used + next - segment.size > this.maxSize)) break
      const { values, texts } = record.packed
      const header = Buffer.allocUnsafe(headerBytes)
      writeHeader(
        {
          ...lengths,
          kind: record.kind,
          segment: segment.sequence,
          firstId,
          events: record.events,
          eventBytes: record.eventBytes,
          checksum: crc32c(texts, crc32c(values)),
          writtenAt,
        },
        header,
      )
      pieces.push(header, values, texts)
      const unpadded = end + headerBytes + values.length + texts.length
      if (unpadded < next) pieces.push(padding.subarray(0, next - unpadded))
      end = next
      places.push({ segment, end, firstId })
      firstId += record.events
    }
    const written = await this.files.writev(file, pieces, start)
    if (written < end - start) {
      this.#reclaim(file, segment)
      throw Object.assign(new Error(`Only ${written} of ${end - start} bytes could be written.`), { code: 'ENOSPC' })
    }
    segment.end = end
    this.#used += Math.max(0, end - segment.size)
    segment.size = Math.max(segment.size, end)
    this.nextId = firstId
    this.#dirty.set(file, false)
    return places
  }

  /** Truncates a partial record: at the next start, its header would announce events that were never accepted. */
  #reclaim(file: number, segment: Segment): void {
    try {
      this.files.ftruncateSync(file, segment.end as number)
      this.#used -= segment.size - (segment.end as number)
      segment.size = segment.end as number
    } catch {
      // The next record overwrites it, or the next start finds and counts it.
    }
  }

  /** Checks whether a file may grow by this many bytes. */
  #makeRoom(growth: number): boolean {
    if (growth <= 0 || this.#used + growth <= this.maxSize) return true
    if (this.#spare > 0) this.#dropSpare()
    return this.#used + growth <= this.maxSize
  }

  /** Starts a new segment, if there is space for its first record. */
  #begin(length: number): Segment | undefined {
    if (this.segments.length >= maxSegments) return undefined
    if (this.#spare < length && !this.#makeRoom(length)) return undefined
    const sequence = this.#nextSequence
    const path = join(this.#folder, segmentName(sequence))
    const size = this.#spare
    const file = size > 0 ? this.#openSpare(path) : this.files.openSync(path, 'wx+', 0o600)
    this.#spare = 0
    this.#seal()
    const segment: Segment = { sequence, path, size, end: 0 }
    this.segments.push(segment)
    this.#nextSequence = sequence + 1
    this.#file = file
    this.#broken = false
    this.#folderDirty = true
    return segment
  }

  /** Opens the spare file before renaming it, so that a failure changes nothing. */
  #openSpare(path: string): number {
    const spare = join(this.#folder, spareName)
    const file = this.files.openSync(spare, 'r+')
    try {
      this.files.renameSync(spare, path)
      return file
    } catch (error) {
      this.files.closeSync(file)
      throw error
    }
  }

  /** Ends the newest segment: truncates the remains after its records, and closes the file after the next sync. */
  #seal(): void {
    const { newest } = this
    const file = this.#file
    if (file === undefined) return
    if (newest?.end !== undefined && newest.size > newest.end) {
      try {
        this.files.ftruncateSync(file, newest.end)
        this.#used -= newest.size - newest.end
        newest.size = newest.end
      } catch {
        // If the disk refuses this too, readers skip the remains by their different sequence number.
      }
    }
    this.#dirty.set(file, true)
    this.#file = undefined
  }

  /** Stops writing to the newest segment: the next record starts another. */
  abandonNewest(): void {
    this.#broken = true
  }

  /** Resolves when everything appended before is on the disk. */
  async sync(): Promise<void> {
    const files = [...this.#dirty]
    this.#dirty.clear()
    const folderDirty = this.#folderDirty
    this.#folderDirty = false
    try {
      for (const segment of [...this.#unsynced]) await this.#syncSegment(segment)
      for (const [file] of files) await this.files.fdatasync(file)
      if (folderDirty) await this.files.fsync(this.#folderFile)
    } catch (error) {
      this.#folderDirty ||= folderDirty
      throw error
    } finally {
      for (const [file, closes] of files) if (closes || file !== this.#file) this.#closeUnlessDirty(file)
    }
  }

  async #syncSegment(segment: Segment): Promise<void> {
    const file = this.segments.includes(segment) ? openIfThere(this.files, segment.path, 'r+') : undefined
    try {
      if (file !== undefined) await this.files.fdatasync(file)
      this.#unsynced.delete(segment) // even if it was released meanwhile
    } finally {
      if (file !== undefined) this.files.closeSync(file)
    }
  }

  /**
   * Rewrites the data after a position in place. After a failed sync, the kernel considers the data written, and the next sync would
   * not report the failure. False if the disk does not return the data unchanged.
   */
  writeAgain(from: Position): boolean {
    let whole = true
    for (const segment of this.segments) {
      if (segment.sequence < from.segment) continue
      const start = segment.sequence === from.segment ? from.offset : 0
      const end = segment.end ?? segment.size
      if (start >= end) continue
      whole = (segment.end === undefined || isWholeFrom(this.files, segment, start, end)) && whole
      const file = this.files.openSync(segment.path, 'r+')
      try {
        for (let at = start; at < end; at += copyBytes) {
          const bytes = Buffer.allocUnsafe(Math.min(copyBytes, end - at))
          if (this.files.readSync(file, bytes, 0, bytes.length, at) === bytes.length)
            this.files.writeSync(file, bytes, 0, bytes.length, at)
        }
      } finally {
        this.files.closeSync(file)
      }
      this.#unsynced.add(segment)
    }
    return whole
  }

  #closeUnlessDirty(file: number): void {
    if (this.#dirty.has(file)) this.#dirty.set(file, true)
    else this.files.closeSync(file)
  }

  /** Releases a segment other than the newest. */
  async release(segment: Segment): Promise<void> {
    const reusable = this.#spare === 0 && segment.size > this.segmentLimit / 2 && this.#used <= this.maxSize
    if (reusable) {
      this.files.renameSync(segment.path, join(this.#folder, spareName))
      this.#spare = segment.size
    } else {
      // In the background, because releasing 128 MiB can take a tenth of a second.
      await this.files.unlink(segment.path)
      this.#used -= segment.size
    }
    this.segments.splice(this.segments.indexOf(segment), 1)
    this.#folderDirty = true
  }

  /** Deletes the spare file, because the disk is full. */
  dropSpare(): void {
    if (this.#spare > 0) this.#dropSpare()
  }

  #dropSpare(): void {
    this.files.unlinkSync(join(this.#folder, spareName))
    this.#used -= this.#spare
    this.#spare = 0
  }

  close(): void {
    for (const [file] of this.#dirty) if (file !== this.#file) this.files.closeSync(file)
    this.#dirty.clear()
    if (this.#file !== undefined) this.files.closeSync(this.#file)
    this.#file = undefined
    this.files.closeSync(this.#folderFile)
  }
}

const lengthsOf = ({ packed: { values, texts } }: NewRecord) => ({ valueBytes: values.length, textBytes: texts.length })

/** Whether only intact records lie between a position and the end. */
function isWholeFrom(files: DiskFiles, segment: Segment, start: number, end: number): boolean {
  let at = start
  for (const { header, offset, whole } of recordsIn(files, segment, start, true)) {
    if (!whole || offset !== at) return false
    at += recordBytes(header)
    if (at >= end) return true
  }
  return false
}
