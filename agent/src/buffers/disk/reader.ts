// The reading side of a disk buffer: reads records in the order of their ids, in large pieces ahead of their use, on the
// thread pool. It skips damaged records; the ids of later records show how many events were lost.

import type { DiskFiles } from './files.ts'
import type { Position } from './ledger.ts'
import { findHeader, headerBytes, isWhole, type RecordHeader, readHeader, recordBytes } from './record.ts'
import type { Segment } from './segment.ts'
import type { SegmentStore } from './store.ts'

const pieceBytes = 1 << 20
const attempts = 3
const pauseMs = 100

export interface ReadRecord {
  readonly header: RecordHeader
  /** Packed values and texts; valid until the next call. */
  readonly bytes: Buffer
  readonly segment: Segment
  /** End offset of the record in its segment. */
  readonly end: number
}

export interface Damage {
  readonly code: 'header' | 'checksum' | 'unreadable' | 'missing_segment'
  readonly path: string
  readonly offset: number
  readonly error?: unknown
}

/** The piece after the window, which is read into the second half of the other buffer while the window is processed. */
interface Ahead {
  readonly file: number
  readonly from: number
  /** Number of bytes read; 0 if the read failed. */
  readonly length: Promise<number>
}

export class SegmentReader {
  /** Called when `next` may have a new record. */
  onReadable: () => void = () => {}
  readonly #files: DiskFiles
  readonly #store: SegmentStore
  readonly #damaged: (damage: Damage) => void
  #segment: Segment | undefined
  /** Start offset in the next opened segment. */
  #startOffset: number
  #startSegment: number
  #file: number | undefined
  #offset = 0
  /** The `#length` bytes of the file that follow `#from`: a part of `#buffer`. */
  #window: Buffer = Buffer.alloc(0)
  #buffer: Buffer = Buffer.allocUnsafeSlow(2 * pieceBytes)
  #other: Buffer = Buffer.allocUnsafeSlow(2 * pieceBytes)
  #from = 0
  #length = 0
  #ahead: Ahead | undefined
  #loading: Promise<void> | undefined
  #closed = false
  /** Start of a damaged range until it is reported. */
  #damagedAt: number | undefined

  constructor(store: SegmentStore, start: Position, damaged: (damage: Damage) => void) {
    this.#files = store.files
    this.#store = store
    this.#startSegment = start.segment
    this.#startOffset = start.offset
    this.#damaged = damaged
  }

  /** True if all written records have been read. */
  get atEnd(): boolean {
    const { newest } = this.#store
    if (newest === undefined) return true
    const end = newest.end ?? newest.size
    if (this.#segment !== newest) return newest.sequence === this.#startSegment && this.#startOffset >= end
    return this.#offset + headerBytes > end
  }

  /** Continues after a record that was passed on without being read. */
  skipTo(segment: Segment, offset: number): void {
    this.#leave()
    this.#startSegment = segment.sequence
    this.#startOffset = offset
  }

  /** The next intact record; undefined while none is available. */
  next(): ReadRecord | undefined {
    for (;;) {
      if (this.#loading !== undefined) return undefined
      const segment = this.#segment ?? this.#enter()
      if (segment === undefined) return undefined
      const limit = segment.end ?? segment.size
      if (this.#offset + headerBytes > limit) {
        this.#reportDamage(segment, 'header')
        if (segment === this.#store.newest) return undefined
        this.#leave()
        this.#startSegment = segment.sequence + 1
        this.#startOffset = 0
        continue
      }
      const at = this.#offset - this.#from
      if (this.#file === undefined || at + headerBytes > this.#length) {
        this.#load(segment, headerBytes)
        return undefined
      }
      const header = readHeader(this.#window, at)
      const length = header === undefined ? 0 : recordBytes(header)
      if (header === undefined || header.segment !== segment.sequence || this.#offset + length > limit) {
        this.#search(segment)
        continue
      }
      if (at + length > this.#length) {
        this.#load(segment, length)
        return undefined
      }
      this.#reportDamage(segment, 'header')
      const whole = isWhole(this.#window, at, header)
      if (!whole) this.#damaged({ code: 'checksum', path: segment.path, offset: this.#offset })
      this.#offset += length
      if (!whole) continue
      const start = at + headerBytes
      const bytes = this.#window.subarray(start, start + header.valueBytes + header.textBytes)
      return { header, bytes, segment, end: this.#offset }
    }
  }

  /** Opens the next segment. */
  #enter(): Segment | undefined {
    const segment = this.#store.segments.find(({ sequence }) => sequence >= this.#startSegment)
    if (segment === undefined) return undefined
    this.#segment = segment
    this.#offset = segment.sequence === this.#startSegment ? this.#startOffset : 0
    this.#from = this.#offset
    this.#length = 0
    return segment
  }

  #leave(): void {
    const file = this.#file
    const ahead = this.#ahead
    if (ahead !== undefined) {
      // The buffer must not be used during a read into it.
      this.#ahead = undefined
      this.#other = Buffer.allocUnsafeSlow(2 * pieceBytes)
      void ahead.length.then(() => this.#files.closeSync(ahead.file))
    } else if (file !== undefined && this.#loading === undefined) {
      this.#files.closeSync(file)
    }
    this.#file = undefined
    this.#segment = undefined
    this.#length = 0
    this.#damagedAt = undefined
  }

  /** Skips bytes that are not a record, within the bytes read so far. */
  #search(segment: Segment): void {
    this.#damagedAt ??= this.#offset
    const at = findHeader(this.#window.subarray(0, this.#length), this.#offset - this.#from + 8, segment.sequence)
    if (at !== undefined) this.#offset = this.#from + at
    // A header may begin in these bytes and end in the next ones.
    else this.#offset = Math.max(this.#offset + 8, (this.#from + this.#length - headerBytes + 8) & ~7)
  }

  /** Damage is reported only when a later record is read, because the end of a segment may just contain old bytes. */
  #reportDamage(segment: Segment, code: 'header'): void {
    if (this.#damagedAt === undefined) return
    const offset = this.#damagedAt
    this.#damagedAt = undefined
    if (segment.end !== undefined || this.#offset + headerBytes <= segment.size) {
      this.#damaged({ code, path: segment.path, offset })
    }
  }

  #load(segment: Segment, needed: number): void {
    this.#loading = this.#fill(segment, needed).then(() => {
      this.#loading = undefined
      if (!this.#closed) this.onReadable()
    })
  }

  /** Reads until at least `needed` bytes after the offset are in memory, or moves to the next segment. */
  async #fill(segment: Segment, needed: number): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        this.#file ??= await this.#files.open(segment.path, 'r')
        await this.#readOn(segment, this.#file, needed)
        return
      } catch (error) {
        const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
        if (this.#closed) return
        if (!missing && attempt < attempts) {
          await new Promise((resolve) => setTimeout(resolve, pauseMs))
          continue
        }
        this.#damaged({
          code: missing ? 'missing_segment' : 'unreadable',
          path: segment.path,
          offset: this.#offset,
          error,
        })
        // Skips the rest of the segment.
        this.#offset = segment.end ?? segment.size
        this.#length = 0
        this.#from = this.#offset
        this.#skipUnreadable(segment)
        return
      }
    }
  }

  #skipUnreadable(segment: Segment): void {
    if (segment === this.#store.newest) this.#store.abandonNewest()
    const file = this.#file
    this.#file = undefined
    if (file !== undefined) this.#files.closeSync(file)
    this.#segment = undefined
    this.#startSegment = segment.sequence + (segment === this.#store.newest ? 0 : 1)
    this.#startOffset = segment === this.#store.newest ? this.#offset : 0
  }

  async #readOn(segment: Segment, file: number, needed: number): Promise<void> {
    const kept = Math.max(0, this.#from + this.#length - this.#offset)
    const tail = this.#window.subarray(this.#length - kept, this.#length)
    const ahead = this.#ahead
    const ready = (await ahead?.length) ?? 0
    this.#ahead = undefined
    const isNext = ahead?.from === this.#offset + kept && kept <= pieceBytes && kept + ready >= needed
    let length = kept
    let target = this.#other
    if (isNext) {
      // The kept bytes are placed right before the bytes already read.
      tail.copy(target, pieceBytes - kept)
      length += ready
      this.#window = target.subarray(pieceBytes - kept)
    } else {
      const wanted = Math.max(needed, pieceBytes)
      if (target.length < kept + wanted) target = Buffer.allocUnsafeSlow(kept + wanted)
      tail.copy(target)
      const end = Math.min((segment.end ?? segment.size) - this.#offset, wanted + kept)
      while (length < end) {
        const count = await this.#files.read(file, target, length, end - length, this.#offset + length)
        if (count === 0) break
        length += count
      }
      if (length < needed) {
        throw Object.assign(new Error('The file has become shorter.'), { code: 'EIO' })
      }
      this.#window = target
    }
    this.#other = this.#buffer.length > 4 * pieceBytes ? Buffer.allocUnsafeSlow(2 * pieceBytes) : this.#buffer
    this.#buffer = target
    this.#from = this.#offset
    this.#length = length
    this.#readAhead(segment, file)
  }

  /** Starts to read the piece after the window, if all of it exists. */
  #readAhead(segment: Segment, file: number): void {
    const from = this.#from + this.#length
    if (this.#closed || from + pieceBytes > (segment.end ?? segment.size)) return
    // If this read fails, the piece is read again when needed.
    const length = this.#files.read(file, this.#other, pieceBytes, pieceBytes, from).catch(() => 0)
    this.#ahead = { file, from, length }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#loading
    const ahead = this.#ahead
    this.#leave()
    await ahead?.length
  }
}
