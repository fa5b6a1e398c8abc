// The kernel's results about the objects in lines that wait, or that other pipelines read, too: it need not read them again, which takes
// ten times as long as to bring this in. They stand for the same lines with the same table of names only.

import type { BlockPool } from './blocks.ts'
import type { Kernel } from './kernel.ts'
import type { KeyTable } from './key-table.ts'

/** Places with an integer for each line. */
const ofLines = ['flags', 'firsts', 'counts', 'totals', 'shapes'] as const

export class ReadObjects {
  /** The names that its numbers stand for. */
  readonly keys: KeyTable
  /** Whether the object in the message of some line is not taken. */
  readonly hasOdd: boolean
  #holders = 1
  readonly #blocks: BlockPool
  readonly #block: Buffer
  readonly #lineBytes: number
  readonly #memberBytes: number
  readonly #recodedLength: number

  /** Copies what the kernel has read of lines, which are in it. */
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

  /** For one more holder, who releases it, too. */
  retain(): this {
    this.#holders++
    return this
  }

  /** Removes one holder. Without holders it is not to be used any more: the memory is given back. */
  release(): void {
    if (--this.#holders === 0) this.#blocks.give(this.#block)
  }
}
