// The kernel's results about waiting or shared lines and about the objects in them. Restoring them takes a tenth of the time to read the
// lines again. They are only valid for the same lines with the same table of names.

import type { BlockPool } from './blocks.ts'
import type { Kernel } from './kernel.ts'
import type { KeyTable } from './key-table.ts'

export class ReadObjects {
  /** The names that its numbers refer to. */
  readonly keys: KeyTable
  /** Whether the kernel rejects some line's message. */
  readonly hasOdd: boolean
  #holders = 1
  readonly #blocks: BlockPool
  readonly #block: Buffer
  readonly #lineCount: number
  readonly #lineBytes: number
  readonly #memberBytes: number
  readonly #recodedLength: number
  /** Where the first line was in the kernel. */
  readonly #place: number

  /** Copies the results for the lines in the kernel. */
  constructor(kernel: Kernel, keys: KeyTable, lineCount: number, hasOdd: boolean, blocks: BlockPool) {
    this.keys = keys
    this.hasOdd = hasOdd
    this.#lineCount = lineCount
    this.#place = kernel.starts[0] as number
    this.#lineBytes = kernel.at('packedBytes') * lineCount
    this.#memberBytes = 16 * kernel.current('memberCount')
    this.#recodedLength = kernel.current('recodedLength')
    this.#blocks = blocks
    const block = blocks.take(this.bytes)
    this.#block = block
    kernel.call.packLines(lineCount)
    const { memory } = kernel
    copyPart(memory, kernel.at('output'), block, 0, this.#lineBytes)
    copyPart(memory, kernel.at('members'), block, this.#lineBytes, this.#memberBytes)
    copyPart(memory, kernel.at('recoded'), block, this.#lineBytes + this.#memberBytes, this.#recodedLength)
  }

  get bytes(): number {
    return this.#lineBytes + this.#memberBytes + this.#recodedLength
  }

  /** Restores the results for the same lines. @param place where the first of them is in the kernel now */
  enter(kernel: Kernel, place: number): void {
    const { memory } = kernel
    const block = this.#block
    copyPart(block, 0, memory, kernel.at('output'), this.#lineBytes)
    copyPart(block, this.#lineBytes, memory, kernel.at('members'), this.#memberBytes)
    copyPart(block, this.#lineBytes + this.#memberBytes, memory, kernel.at('recoded'), this.#recodedLength)
    kernel.call.unpackLines(this.#lineCount, place - this.#place)
    kernel.call.setRecodedLength(this.#recodedLength)
  }

  /** Adds a holder, who must release it too. */
  retain(): this {
    this.#holders++
    return this
  }

  /** Removes one holder. When there are no more holders, the memory is returned and must not be used. */
  release(): void {
    if (--this.#holders === 0) this.#blocks.give(this.#block)
  }
}

function copyPart(source: Buffer, from: number, target: Buffer, to: number, length: number): void {
  if (length > 0) source.copy(target, to, from, from + length)
}
