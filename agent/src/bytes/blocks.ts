// Copies of chunks whose lines must wait. Reusable blocks avoid memory outside the heap: V8 starts a collection when there is much of
// it, however small the heap is.

/** Bytes of a block. */
const blockBytes = 128 * 1024
/** Smaller copies get a buffer of their own size, because batches of a few lines may wait by the thousand. */
const minBlockBytes = 32 * 1024
/** Maximum number of free blocks: as many as a buffer of typical size takes and returns repeatedly. */
const maxFree = 64
/** Number of copies between two checks of how many blocks are needed. */
const lookAfter = 256

export class BlockPool {
  readonly #free: Buffer[] = []
  /** Lowest number of free blocks since the last check; that many blocks were not needed. */
  #unused = 0
  #untilLook = lookAfter

  /** Returns a buffer for this many bytes. */
  take(bytes: number): Buffer {
    this.#look()
    if (bytes <= minBlockBytes || bytes > blockBytes) return Buffer.allocUnsafeSlow(bytes)
    const block = this.#free.pop() ?? Buffer.allocUnsafeSlow(blockBytes)
    if (this.#free.length < this.#unused) this.#unused = this.#free.length
    return block
  }

  give(block: Buffer): void {
    if (block.length === blockBytes && this.#free.length < maxFree) this.#free.push(block)
  }

  /** Frees the blocks not needed since the last check. */
  #look(): void {
    if (--this.#untilLook > 0) return
    this.#untilLook = lookAfter
    this.#free.splice(0, this.#unused)
    this.#unused = this.#free.length
  }
}
