// Reads a compressed file like an uncompressed one: fills slabs with decompressed bytes and carries over the unused
// rest.

import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Slab, SlabPool } from './slab.ts'

export interface Taken {
  /** Number of processed bytes; the rest is passed again, with more bytes after it. */
  readonly bytes: number
  /** A promise to await before the next slab. */
  readonly waiting: Promise<void> | undefined
}

/**
 * Decompresses from the beginning, skips the first `offset` bytes, and passes the rest to `take`. @param take receives
 * a slab whose first `length` bytes are filled; `last` marks the last one
 */
export async function gunzipFrom(
  descriptor: number,
  offset: number,
  pool: SlabPool,
  signal: AbortSignal,
  take: (slab: Slab, length: number, last: boolean) => Taken,
): Promise<void> {
  let toSkip = offset
  let slab = pool.take()
  let length = 0
  // Moves the remaining bytes to the front of another slab. Must be called before the old slab can be returned.
  const next = (taken: Taken): void => {
    const old = slab
    const rest = old.buffer.subarray(taken.bytes, length)
    slab = pool.take()
    rest.copy(slab.buffer)
    length = rest.length
    if (!old.held) pool.give(old)
  }
  await pipeline(
    createReadStream('', { fd: descriptor, autoClose: false, start: 0, highWaterMark: 256 * 1024 }),
    createGunzip({ chunkSize: 64 * 1024 }),
    async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        let at = Math.min(toSkip, chunk.length)
        toSkip -= at
        while (at < chunk.length) {
          const copied = chunk.copy(slab.buffer, length, at)
          at += copied
          length += copied
          if (length < slab.buffer.length) continue
          const taken = take(slab, length, false)
          next(taken)
          await taken.waiting
          if (signal.aborted) return
        }
      }
      const taken = take(slab, length, true)
      next(taken)
      await taken.waiting
    },
    { signal },
  )
  pool.give(slab)
}
