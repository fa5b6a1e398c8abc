// Copies of chunks whose lines must wait. Blocks are reused, because V8 starts a collection if much memory outside the heap is
// allocated, however small the heap is.

import { Spares } from '../event/spares.ts'

/** Bytes of a block. */
const blockBytes = 128 * 1024
/** Smaller copies get a buffer of their own size, because batches of a few lines may wait by the thousand. */
const minBlockBytes = 32 * 1024
/** Maximum number of free blocks: as many as a buffer of typical size takes and returns repeatedly. */
const maxFree = 64

export class BlockPool {
  readonly #spares = new Spares<Buffer>(maxFree)

  /** Returns a buffer for this many bytes. */
  take(bytes: number): Buffer {
    if (bytes <= minBlockBytes || bytes > blockBytes) return Buffer.allocUnsafeSlow(bytes)
    return this.#spares.take() ?? Buffer.allocUnsafeSlow(blockBytes)
  }

  give(block: Buffer): void {
    if (block.length === blockBytes) this.#spares.give(block)
  }
}
