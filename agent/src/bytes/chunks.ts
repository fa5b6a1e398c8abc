// Chunks in the memory of the kernel: a file is read into them, and the kernel reads its lines where they are. A chunk is free again when
// no object refers to its buffer.

import { type Kernel, usedKernel } from './kernel.ts'

/** Bytes of a chunk. */
export const chunkBytes = 128 * 1024

/** Number of chunks that are never lent: lines that wait for slow destinations must not keep other files from being read in the kernel. */
const reservedChunks = 8

class Chunks {
  readonly #kernel: Kernel
  /** Places of chunks. */
  readonly #free: number[]
  readonly #dropped = new FinalizationRegistry<number>((place) => {
    this.#free.push(place)
  })

  readonly #maxLent: number
  #lent = 0

  constructor(kernel: Kernel) {
    if (kernel.at('chunkBytes') !== chunkBytes) throw new RangeError('The kernel has chunks of another size.')
    this.#kernel = kernel
    const first = kernel.at('chunks')
    const stride = kernel.at('chunkStride')
    const count = kernel.at('maxChunks')
    this.#maxLent = count - reservedChunks
    this.#free = Array.from({ length: count }, (_, index) => first + (count - 1 - index) * stride)
  }

  get isEmpty(): boolean {
    return this.#free.length === 0
  }

  lend(): (() => void) | undefined {
    if (this.#lent >= this.#maxLent) return undefined
    this.#lent++
    return () => void this.#lent--
  }

  take(): Buffer | undefined {
    const place = this.#free.pop()
    if (place === undefined) return undefined
    const chunk = this.#kernel.memory.subarray(place, place + chunkBytes)
    this.#dropped.register(chunk, place)
    return chunk
  }
}

let chunks: Chunks | undefined

/** Undefined while nothing has needed the kernel. */
function theChunks(): Chunks | undefined {
  const kernel = usedKernel()
  if (kernel !== undefined) chunks ??= new Chunks(kernel)
  return chunks
}

/** A chunk; undefined if all are in use, or nothing has needed the kernel yet. */
export function takeChunk(): Buffer | undefined {
  return theChunks()?.take()
}

/** Counts a chunk as lent until the returned function is called; undefined if too many are lent. */
export function lendChunk(): (() => void) | undefined {
  return theChunks()?.lend()
}

/** Whether there is a free chunk. */
export function hasFreeChunk(): boolean {
  return theChunks()?.isEmpty === false
}

export function isChunk(buffer: Buffer): boolean {
  return usedKernel()?.placeOf(buffer) !== undefined
}
