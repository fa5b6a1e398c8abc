// Chunks of files that several tailers read. The first tailer at a position reads the chunk, finds its lines, and leaves it here for
// tailers that are at the same position, or that wait for the chunk before it. No tailer ever waits for another: a tailer without a
// chunk at its position reads the file itself, and shares chunks again when positions coincide.
// A tailer only gets chunks of files that it has opened itself. A chunk is used within one turn of the loop, and never changes. The
// memory of all chunks is bounded; the oldest are dropped first. A reader of a chunk may leave a result for later readers.

import type { ResultPlace, SharedResult } from '../bytes/shared-result.ts'
import type { Slab, SlabPool } from './slab.ts'

/** Limit for the bytes of all chunks and results: more than a pipeline reads in one turn. */
const maxBytes = 4 << 20
/** Small chunks cost more memory than their bytes. */
const maxChunks = 512
/** A chunk not taken for this long is dropped, because the file may have been truncated since. */
const maxAgeMs = 2000

/** A reader's position in a file. */
interface Position {
  /** Next byte to read. */
  readonly offset: number
}

interface ChunkParts {
  /** Whole lines, which must not be changed: each tailer takes a view. */
  readonly slab: Slab
  /** Number of bytes read, including the beginning of an incomplete last line. */
  readonly length: number
  /** Whether the read reached the end of the file. */
  readonly isEnd: boolean
}

export interface SharedChunk extends ChunkParts {
  /** Monotonic time of the read. */
  readonly readAt: number
}

class Chunk implements SharedChunk, ResultPlace {
  readonly slab: Slab
  readonly length: number
  readonly isEnd: boolean
  readonly readAt = performance.now()
  readonly file: SharedFile
  /** The readers at its position, or on the way there. */
  readonly takers: Set<FileShare>
  /** Whether a reader is working with it; initially the reader that read it. */
  isInUse = true
  /** Whether no reader will take it, and its buffer was returned. */
  isDropped = false
  isFree = false
  result: SharedResult | undefined
  readonly #ring: ChunkRing

  constructor(ring: ChunkRing, { slab, length, isEnd }: ChunkParts, file: SharedFile, takers: Set<FileShare>) {
    this.#ring = ring
    this.slab = slab
    this.length = length
    this.isEnd = isEnd
    this.file = file
    this.takers = takers
  }

  get bytes(): number {
    return this.slab.buffer.length + (this.result?.bytes ?? 0)
  }

  get isWanted(): boolean {
    return this.result === undefined && !this.isDropped && this.takers.size > 0
  }

  leave(result: SharedResult): boolean {
    if (!this.isWanted || this.#ring.bytes + result.bytes > maxBytes) return false
    this.result = result
    return true
  }
}

/** A file and its chunks, by their positions. */
class SharedFile {
  readonly shares = new Set<FileShare>()
  readonly chunks = new Map<number, Chunk>()

  /** The readers that will reach a position after the current chunks. */
  takersAt(position: number, reader: FileShare): Set<FileShare> {
    const takers = new Set<FileShare>()
    for (const chunk of this.chunks.values()) {
      if (chunk.slab.end === position) for (const share of chunk.takers) takers.add(share)
    }
    for (const share of this.shares) if (share.position.offset === position) takers.add(share)
    takers.delete(reader)
    return takers
  }
}

/** All chunks, the oldest first. */
class ChunkRing {
  readonly #pool: SlabPool
  readonly #chunks = new Set<Chunk>()

  constructor(pool: SlabPool) {
    this.#pool = pool
  }

  get bytes(): number {
    let bytes = 0
    for (const chunk of this.#chunks) bytes += chunk.bytes
    return bytes
  }

  add(chunk: Chunk): void {
    const { chunks } = chunk.file
    const { base } = chunk.slab
    const before = chunks.get(base)
    if (before !== undefined) this.drop(before)
    chunks.set(base, chunk)
    this.#chunks.add(chunk)
    for (const oldest of this.#chunks) {
      if (this.bytes <= maxBytes && this.#chunks.size <= maxChunks) return
      this.#giveUp(oldest)
    }
  }

  /** Drops a chunk that no reader will take. */
  drop(chunk: Chunk): void {
    if (this.#chunks.delete(chunk)) chunk.file.chunks.delete(chunk.slab.base)
    chunk.isDropped = true
    if (chunk.isInUse || chunk.isFree) return
    chunk.isFree = true
    chunk.result?.release()
    chunk.result = undefined
    this.#pool.give(chunk.slab)
  }

  /** The bytes stay unchanged until the work ends. */
  use<T>(chunk: Chunk, share: FileShare, work: (lines: Slab) => T): T {
    chunk.isInUse = true
    chunk.takers.delete(share)
    try {
      return work(chunk.slab.view(chunk))
    } finally {
      chunk.isInUse = false
      if (chunk.isDropped || chunk.takers.size === 0) this.drop(chunk)
    }
  }

  /** No longer keeps any chunk of a file for one of its readers. */
  forget(share: FileShare, { chunks }: SharedFile): void {
    for (const chunk of chunks.values()) {
      if (chunk.takers.delete(share) && chunk.takers.size === 0) this.drop(chunk)
    }
  }

  expire(oldest: number): void {
    for (const chunk of this.#chunks) if (chunk.readAt < oldest) this.#giveUp(chunk)
  }

  /** Readers that did not take this chunk are too slow for the following chunks too. */
  #giveUp(chunk: Chunk): void {
    const { file, takers } = chunk
    this.drop(chunk)
    for (const share of takers) this.forget(share, file)
  }
}

export class SharedReads {
  /** The pool of the chunk buffers. */
  readonly pool: SlabPool
  readonly #files = new Map<string, SharedFile>()
  readonly #ring: ChunkRing

  constructor(pool: SlabPool) {
    this.pool = pool
    this.#ring = new ChunkRing(pool)
  }

  /** @param key equal for all readers that have opened the same file and find the same lines in it */
  open(key: string, position: Position): FileShare {
    const file = this.#files.get(key) ?? new SharedFile()
    this.#files.set(key, file)
    return new FileShare(this.#ring, file, position, () => this.#files.delete(key))
  }

  /** Bytes of the chunks that some reader has not taken yet. */
  get bytes(): number {
    return this.#ring.bytes
  }

  /** Drops chunks that no reader has taken for some time. */
  expire(): void {
    this.#ring.expire(performance.now() - maxAgeMs)
  }
}

/** One tailer's share of a file: it takes chunks of other tailers, and leaves its own. */
export class FileShare {
  readonly position: Position
  readonly #ring: ChunkRing
  readonly #file: SharedFile
  readonly #unused: () => void

  /** @param unused called when no tailer shares the file any more */
  constructor(ring: ChunkRing, file: SharedFile, position: Position, unused: () => void) {
    this.position = position
    this.#ring = ring
    this.#file = file
    this.#unused = unused
    file.shares.add(this)
  }

  /** The chunk at the tailer's position. */
  find(): SharedChunk | undefined {
    return this.#file.chunks.get(this.position.offset)
  }

  /** Works with a chunk that was just found or left. */
  use<T>(chunk: SharedChunk, work: (lines: Slab) => T): T {
    return this.#ring.use(chunk as Chunk, this, work)
  }

  /**
   * Leaves a chunk read at the tailer's position, if other readers will take it. Its buffer no longer belongs to the caller, who must
   * then use the chunk.
   */
  leave(slab: Slab, length: number, isEnd: boolean): SharedChunk | undefined {
    const file = this.#file
    if (file.shares.size === 1) return undefined
    const takers = file.takersAt(slab.base, this)
    if (takers.size === 0) return undefined
    const chunk = new Chunk(this.#ring, { slab: slab.handOver(), length, isEnd }, file, takers)
    this.#ring.add(chunk)
    return chunk
  }

  /** The content of the file has changed: the chunks read from it are stale. */
  changed(): void {
    for (const chunk of this.#file.chunks.values()) this.#ring.drop(chunk)
  }

  /** The tailer has closed the file. */
  close(): void {
    const file = this.#file
    if (!file.shares.delete(this)) return
    this.#ring.forget(this, file)
    if (file.shares.size === 0) this.#unused()
  }
}
