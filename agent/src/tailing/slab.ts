// A piece of a file: its bytes and the positions of its lines. Lines become text only on request. A slab belongs to the reader until it
// is `held`; then its bytes stay unchanged until the holder returns it. If several readers share a slab, each takes a view, from which it
// may exclude lines.

import { isAscii, isUtf8 } from 'node:buffer'
import { chunkBytes, hasFreeChunk, isChunk, lendChunk, takeChunk } from '../bytes/chunks.ts'
import { usedKernel } from '../bytes/kernel.ts'
import type { ResultPlace } from '../bytes/shared-result.ts'
import { Timestamp } from '../event/timestamp.ts'
import { Bytes } from '../event/value.ts'

/** The function behind `toString`. It is called for every line, and the indirection would cost as much as the work. */
type Sliceable = Buffer & { latin1Slice(from: number, to: number): string; utf8Slice(from: number, to: number): string }

const encodings = { unknown: 0, ascii: 1, utf8: 2, mixed: 3 } as const

export class Slab {
  buffer: Buffer
  /** Position in the file of the first byte. */
  base = 0
  /** Time of the read. */
  time = new Timestamp(0, 0)
  /** Number of whole lines. */
  count = 0
  starts = new Int32Array(0)
  ends = new Int32Array(0)
  /** Bytes up to the end of the last whole line, including its delimiter. */
  consumed = 0
  /** Number of skipped lines that were too long. */
  discarded = 0
  /** Whether another component reads the bytes: the slab must not be refilled before it is released. */
  held = false
  #encoding: number = encodings.unknown
  /** Whether the bytes and line positions belong to other readers too: the slab then cannot be held. */
  isView = false
  /** The shared result of a view of all lines. */
  results: ResultPlace | undefined

  readonly #pool: SlabPool | undefined

  /** @param pool to which the slab returns when it was lent */
  constructor(buffer: Buffer, pool?: SlabPool) {
    this.buffer = buffer
    this.#pool = pool
  }

  /** Finds the lines in the bytes `[from, length)`. A line longer than `maxLineBytes` is skipped and counted. */
  split(from: number, length: number, delimiter: Delimiter, maxLineBytes: number): void {
    this.count = 0
    this.discarded = 0
    this.#encoding = encodings.unknown
    if (delimiter.isNewline && this.#splitInKernel(from, length, maxLineBytes)) return
    const bytes = this.buffer
    const width = delimiter.length
    let at = from
    for (;;) {
      // Searches the whole buffer, because a view of the filled part would cost more than a small read.
      const end = delimiter.find(bytes, at)
      if (end < 0 || end + width > length) break
      if (end - at <= maxLineBytes) this.#add(at, end)
      else this.discarded++
      at = end + width
    }
    this.consumed = at
  }

  /** False if the bytes are not in the memory of the kernel, or have too many lines for it. */
  #splitInKernel(from: number, length: number, maxLineBytes: number): boolean {
    const kernel = usedKernel()
    const place = kernel?.placeOf(this.buffer)
    if (kernel === undefined || place === undefined) return false
    const count = kernel.call.splitLines(place, from, length, maxLineBytes)
    if (count < 0) return false
    while (this.starts.length < count) {
      this.starts = grown(this.starts)
      this.ends = grown(this.ends)
    }
    this.starts.set(kernel.splitStarts.subarray(0, count))
    this.ends.set(kernel.splitEnds.subarray(0, count))
    this.count = count
    this.consumed = kernel.memory.readInt32LE(kernel.at('splitEnd'))
    this.discarded = kernel.memory.readInt32LE(kernel.at('splitTooLong'))
    return true
  }

  /**
   * Lends the bytes to a holder until it returns them; undefined if the holder must copy them. A few lines must not keep a large buffer,
   * and only chunks of the kernel are worth lending.
   */
  lend(): (() => void) | undefined {
    const pool = this.#pool
    if (pool === undefined || this.isView || !isChunk(this.buffer)) return undefined
    // A limit may have removed most lines.
    const bytes = this.count === 0 ? 0 : (this.ends[this.count - 1] as number) - (this.starts[0] as number)
    if (bytes * 4 < this.buffer.length) return undefined
    const returned = lendChunk()
    if (returned === undefined) return undefined
    this.held = true
    return () => {
      returned()
      pool.give(this)
    }
  }

  /** Removes unwanted lines, and returns their number. */
  keep(wanted: (start: number, end: number) => boolean): number {
    if (this.isView) {
      this.results = undefined
      this.starts = this.starts.slice(0, this.count)
      this.ends = this.ends.slice(0, this.count)
    }
    let kept = 0
    for (let line = 0; line < this.count; line++) {
      const start = this.starts[line] as number
      const end = this.ends[line] as number
      if (!wanted(start, end)) continue
      this.starts[kept] = start
      this.ends[kept++] = end
    }
    const left = this.count - kept
    this.count = kept
    return left
  }

  /** Adds the bytes `[from, to)` as one more line. */
  addLast(from: number, to: number): void {
    this.#add(from, to)
    this.consumed = to
  }

  #add(start: number, end: number): void {
    if (this.count === this.starts.length) {
      this.starts = grown(this.starts)
      this.ends = grown(this.ends)
    }
    this.starts[this.count] = start
    this.ends[this.count++] = end
  }

  /** Position in the file after the last whole line. */
  get end(): number {
    return this.base + this.consumed
  }

  /**
   * A string value from the bytes `[from, to)`, which lie within one line: text if they are valid UTF-8, otherwise a copy of
   * the bytes.
   */
  text(from: number, to: number): string | Bytes {
    if (this.#encoding === encodings.unknown) this.#encoding = this.#detect()
    if (this.#encoding === encodings.ascii) return (this.buffer as Sliceable).latin1Slice(from, to)
    if (this.#encoding === encodings.utf8) return (this.buffer as Sliceable).utf8Slice(from, to)
    const bytes = this.buffer.subarray(from, to)
    return isUtf8(bytes) ? (this.buffer as Sliceable).utf8Slice(from, to) : new Bytes(Buffer.from(bytes))
  }

  /** Whether some line is not valid UTF-8. */
  get isMixed(): boolean {
    if (this.#encoding === encodings.unknown) this.#encoding = this.#detect()
    return this.#encoding === encodings.mixed
  }

  get isAscii(): boolean {
    return !this.isMixed && this.#encoding === encodings.ascii
  }

  #detect(): number {
    // Checks only whole lines, because the rest may end inside a character.
    const lines = this.buffer.subarray(0, this.consumed)
    return isAscii(lines) ? encodings.ascii : isUtf8(lines) ? encodings.utf8 : encodings.mixed
  }

  /** Whether the lines use only a small part of the buffer. */
  get isSparse(): boolean {
    return this.consumed * 4 < this.buffer.length
  }

  /**
   * Moves the lines to a slab for several readers, who take views. The buffer moves with them, except that a few lines
   * are copied.
   */
  handOver(): Slab {
    if (this.#encoding === encodings.unknown) this.#encoding = this.#detect()
    const lines = this.isSparse ? this.compacted() : this.#copied(this.#pool)
    this.held = !this.isSparse
    return lines
  }

  /** A view of the same lines for another reader. */
  view(results?: ResultPlace): Slab {
    const view = this.#copied()
    view.results = results
    view.isView = true
    return view
  }

  /** The same lines, by default in the same buffer. */
  #copied(pool?: SlabPool, buffer = this.buffer): Slab {
    const copy = new Slab(buffer, pool)
    copy.base = this.base
    copy.time = this.time
    copy.count = this.count
    copy.starts = this.starts
    copy.ends = this.ends
    copy.consumed = this.consumed
    copy.#encoding = this.#encoding
    return copy
  }

  /** The same lines in a buffer of exactly their size. */
  compacted(): Slab {
    // Allocate separately: a slice of a pool would keep the whole pool while the chunk waits.
    const copy = this.#copied(undefined, Buffer.allocUnsafeSlow(this.consumed))
    this.buffer.copy(copy.buffer, 0, 0, this.consumed)
    copy.starts = this.starts.slice(0, this.count)
    copy.ends = this.ends.slice(0, this.count)
    return copy
  }
}

function grown(array: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(1024, array.length * 2))
  larger.set(array)
  return larger
}

/** The line delimiter. */
export interface Delimiter {
  readonly length: number
  readonly isNewline: boolean
  /** Bytes per character unit; lines begin at multiples of it: 2 for UTF-16, otherwise 1. */
  readonly unit: number
  /** Index of the next delimiter at or after `from`; negative if there is none. */
  find(bytes: Buffer, from: number): number
}

/**
 * How many of the first `length` bytes of a chunk without a delimiter need no second search. The chunk may end inside a delimiter
 * or a character: the next search starts before it.
 */
export function searchedBytes(length: number, { length: delimiterBytes, unit }: Delimiter): number {
  const beginning = delimiterBytes - unit
  return length - ((length - beginning) % unit) - beginning
}

export function compileDelimiter(bytes: Buffer, unit = 1): Delimiter {
  const single = bytes.length === 1 ? (bytes[0] as number) : undefined
  if (single !== undefined) {
    return { length: 1, isNewline: single === 0x0a, unit, find: (haystack, from) => haystack.indexOf(single, from) }
  }
  return {
    length: bytes.length,
    isNewline: false,
    unit,
    find(haystack, from) {
      let at = haystack.indexOf(bytes, from)
      // Half of one character and half of the next can look like a delimiter.
      while (at >= 0 && (at - from) % unit !== 0) at = haystack.indexOf(bytes, at + 1)
      return at
    },
  }
}

/** Enough for the lines that wait in a buffer of 10,000 events. */
const maxSpareChunks = 32

/** Lines whose positions a spare slab has room for: a chunk of empty lines needs eight times the bytes of the chunk. */
const maxKeptLines = 16_384

/** Spare slabs. */
export class SlabPool {
  readonly #free: Slab[] = []
  readonly capacity: number
  readonly #keep: number
  /** Whether the slabs are chunks of the kernel, as far as there are enough. */
  readonly #hasChunks: boolean

  /** @param keep maximum number of spare slabs */
  constructor(capacity: number, keep = 8, hasChunks = false) {
    this.capacity = capacity
    this.#keep = keep
    this.#hasChunks = hasChunks && capacity === chunkBytes
  }

  take(): Slab {
    const slab = this.#free.pop()
    if (slab !== undefined) return slab
    const chunk = this.#hasChunks ? takeChunk() : undefined
    return new Slab(chunk ?? Buffer.allocUnsafeSlow(this.capacity), this)
  }

  give(slab: Slab): void {
    slab.held = false
    if (this.#free.length >= this.#keep || slab.buffer.length !== this.capacity) return
    // A chunk replaces a slab that was created before the kernel was needed.
    if (this.#hasChunks && !isChunk(slab.buffer) && hasFreeChunk()) return
    if (slab.starts.length > maxKeptLines) {
      slab.starts = new Int32Array(0)
      slab.ends = new Int32Array(0)
    }
    this.#free.push(slab)
  }
}

/** A pool of slabs whose lines the kernel reads in place. */
export function chunkPool(): SlabPool {
  return new SlabPool(chunkBytes, maxSpareChunks, true)
}
