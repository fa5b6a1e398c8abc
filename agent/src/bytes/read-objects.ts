// The kernel's results about the objects in lines that wait: it need not read them again when it is their turn, which takes ten times
// as long as to bring this in.

import type { BlockPool } from './blocks.ts'
import type { Kernel } from './kernel.ts'

/** Places with an integer for each line. */
const ofLines = ['flags', 'firsts', 'counts', 'totals', 'shapes'] as const

export class ReadObjects {
  readonly #blocks: BlockPool
  readonly #block: Buffer
  readonly #lineBytes: number
  readonly #memberBytes: number
  readonly #recodedLength: number

  /** Copies what the kernel has read of lines, which are in it. */
  constructor(kernel: Kernel, lineCount: number, blocks: BlockPool) {
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

  /** Brings it back: the same lines are in the kernel again, and in the same place. */
  enter(kernel: Kernel): void {
    let from = 0
    for (const [to, length] of this.#places(kernel)) {
      this.#block.copy(kernel.memory, to, from, from + length)
      from += length
    }
    kernel.call.setRecodedLength(this.#recodedLength)
  }

  /** Where it stands in the kernel, and how many bytes that takes. */
  #places(kernel: Kernel): (readonly [from: number, length: number])[] {
    return [
      ...ofLines.map((name) => [kernel.at(name), this.#lineBytes] as const),
      [kernel.at('members'), this.#memberBytes],
      [kernel.at('recoded'), this.#recodedLength],
    ]
  }

  /** Gives the memory back. It is not to be used any more. */
  release(): void {
    this.#blocks.give(this.#block)
  }
}
