// Copies of chunks whose lines wait. A copy without a reusable block is memory outside the heap: V8 collects garbage when there is much
// of it, however small the heap is.

/** Bytes of a block. */
const blockBytes = 64 * 1024
/** Fewer bytes get a copy of their size: batches of a few lines may wait by the thousand. */
const minBlockBytes = 32 * 1024
/** Blocks in reserve at most: what a buffer of usual size takes in and gives back again and again. */
const maxFree = 128
/** Copies between two looks at how many blocks are needed. */
const lookAfter = 256

export class BlockPool {
  readonly #free: Buffer[] = []
  /** Fewest that lay here since the last look: nobody needed those. */
  #unused = 0
  #untilLook = lookAfter

  /** Room for this many bytes. */
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

  /** Lets go of what was not needed since the last look. */
  #look(): void {
    if (--this.#untilLook > 0) return
    this.#untilLook = lookAfter
    this.#free.splice(0, this.#unused)
    this.#unused = this.#free.length
  }
}
