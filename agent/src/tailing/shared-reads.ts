// Chunks of files that several tailers read. The first tailer at a position reads the chunk and finds its lines, and leaves it here for
// those that stand at the same position, or that wait for the chunk before it. Nobody waits for anybody: a tailer that finds no chunk
// at its position reads by itself, and meets the others again where it stands as they do.
//
// A tailer gets only chunks of files that it has opened itself. A chunk is used within one turn of the loop, and never changes. The
// memory of all chunks is bounded; the oldest go first. A reader of a chunk may leave a result for those who come after it.

import type { ResultPlace, SharedResult } from '../bytes/shared-result.ts'
import type { Slab, SlabPool } from './slab.ts'

/** Bytes of all chunks and results: more than what a pipeline reads in its turn. */
const maxBytes = 4 << 20
/** Small chunks cost more than their bytes. */
const maxChunks = 512
/** A chunk that nobody has taken for this long is given up: the file may have been cut since. */
const maxAgeMs = 2000

/** The reader of a file. */
interface Position {
  /** Next byte to read. */
  readonly offset: number
}

interface ChunkParts {
  /** Whole lines, which are not to be changed: each tailer takes a view. */
  readonly slab: Slab
  /** Bytes that were read, with the beginning of a line behind the last whole one. */
  readonly length: number
  /** Whether the file had no more when it was read. */
  readonly isEnd: boolean
}

export interface SharedChunk extends ChunkParts {
  /** When it was read, by the monotonic clock. */
  readonly readAt: number
}

class Chunk implements SharedChunk, ResultPlace {
  readonly slab: Slab
  readonly length: number
  readonly isEnd: boolean
  readonly readAt = performance.now()
  readonly file: SharedFile
  /** Those who stand at it, or are on their way to it. */
  readonly takers: Set<FileShare>
  /** Whether somebody works with it at the moment: at first the one who has read it. */
  isInUse = true
  /** Whether nobody will come for it, and whether its buffer was given back. */
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

  /** Those who will come to a position when they have read what is here. */
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

  /** Nobody will come for a chunk. */
  drop(chunk: Chunk): void {
    if (this.#chunks.delete(chunk)) chunk.file.chunks.delete(chunk.slab.base)
    chunk.isDropped = true
    if (chunk.isInUse || chunk.isFree) return
    chunk.isFree = true
    chunk.result?.release()
    chunk.result = undefined
    this.#pool.give(chunk.slab)
  }

  /** Its bytes stay as they are until the work ends. */
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

  /** No chunk of a file is kept for one of its readers any more. */
  forget(share: FileShare, { chunks }: SharedFile): void {
    for (const chunk of chunks.values()) {
      if (chunk.takers.delete(share) && chunk.takers.size === 0) this.drop(chunk)
    }
  }

  expire(oldest: number): void {
    for (const chunk of this.#chunks) if (chunk.readAt < oldest) this.#giveUp(chunk)
  }

  /** Those who have not come for a chunk are too slow for those behind it, too. */
  #giveUp(chunk: Chunk): void {
    const { file, takers } = chunk
    this.drop(chunk)
    for (const share of takers) this.forget(share, file)
  }
}

export class SharedReads {
  /** Where the buffers of chunks come from, and go to. */
  readonly pool: SlabPool
  readonly #files = new Map<string, SharedFile>()
  readonly #ring: ChunkRing

  constructor(pool: SlabPool) {
    this.pool = pool
    this.#ring = new ChunkRing(pool)
  }

  /** @param key the same for those who have opened the same file and find the same lines in it */
  open(key: string, position: Position): FileShare {
    const file = this.#files.get(key) ?? new SharedFile()
    this.#files.set(key, file)
    return new FileShare(this.#ring, file, position, () => this.#files.delete(key))
  }

  /** Bytes of the chunks that some reader has not taken yet. */
  get bytes(): number {
    return this.#ring.bytes
  }

  /** Gives up the chunks that nobody has taken for some time. */
  expire(): void {
    this.#ring.expire(performance.now() - maxAgeMs)
  }
}

/** One tailer's share of a file: it takes the chunks of others, and leaves its own. */
export class FileShare {
  readonly position: Position
  readonly #ring: ChunkRing
  readonly #file: SharedFile
  readonly #unused: () => void

  /** @param unused called when nobody has the file any more */
  constructor(ring: ChunkRing, file: SharedFile, position: Position, unused: () => void) {
    this.position = position
    this.#ring = ring
    this.#file = file
    this.#unused = unused
    file.shares.add(this)
  }

  /** The chunk that begins where the tailer stands. */
  find(): SharedChunk | undefined {
    return this.#file.chunks.get(this.position.offset)
  }

  /** Works with a chunk that was found or left just now. */
  use<T>(chunk: SharedChunk, work: (lines: Slab) => T): T {
    return this.#ring.use(chunk as Chunk, this, work)
  }

  /**
   * Leaves a chunk that was read where the tailer stands, if others will come for it. Its buffer is not the caller's any more, who has
   * to use the chunk then.
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

  /** The content of the file has changed: what was read of it does not stand there any more. */
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
