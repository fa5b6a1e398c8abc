// The kernel's results about the objects in waiting or shared lines. Restoring them takes a tenth of the time to read the objects again.
// They are only valid for the same lines with the same table of names.

import type { BlockPool } from './blocks.ts'
import type { Kernel } from './kernel.ts'
import type { KeyTable } from './key-table.ts'

/** Areas with an integer per line. */
const ofLines = ['flags', 'firsts', 'counts', 'totals', 'shapes'] as const

export class ReadObjects {
  /** The names that its numbers refer to. */
  readonly keys: KeyTable
  /** Whether the kernel rejects some line's message. */
  readonly hasOdd: boolean
  #holders = 1
  readonly #blocks: BlockPool
  readonly #block: Buffer
  readonly #lineBytes: number
  readonly #memberBytes: number
  readonly #recodedLength: number

  /** Copies the results for the lines in the kernel. */
  constructor(kernel: Kernel, keys: KeyTable, lineCount: number, hasOdd: boolean, blocks: BlockPool) {
    this.keys = keys
    this.hasOdd = hasOdd
    this.#lineBytes = 4 * lineCount
    this.#memberBytes = 16 * kernel.current('memberCount')
    this.#recodedLength = kernel.current('recodedLength')
    this.#blocks = blocks
    this.#block = blocks.take(this.bytes)
    let to = 0
    for (const [from, length] of this.#places(kernel)) {
      kernel.memory.copy(this.#block, to, from, from + length)
      to += length
    }
  }

  get bytes(): number {
    return ofLines.length * this.#lineBytes + this.#memberBytes + this.#recodedLength
  }

  /** Restores the results: the kernel must contain the same lines at the same offsets. */
  enter(kernel: Kernel): void {
    let from = 0
    for (const [to, length] of this.#places(kernel)) {
      this.#block.copy(kernel.memory, to, from, from + length)
      from += length
    }
    kernel.call.setRecodedLength(this.#recodedLength)
  }

  /** The used ranges of the kernel's memory. */
  #places(kernel: Kernel): (readonly [from: number, length: number])[] {
    return [
      ...ofLines.map((name) => [kernel.at(name), this.#lineBytes] as const),
      [kernel.at('members'), this.#memberBytes],
      [kernel.at('recoded'), this.#recodedLength],
    ]
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
