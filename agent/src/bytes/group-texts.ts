// Texts that identify the groups of the lines in the kernel: the members by which the lines are compared, as bytes. Two lines of one
// origin with the same text have equal members.

import type { Kernel } from './kernel.ts'

/** Maximum length of a text. */
const maxText = 4096

export class GroupTexts {
  readonly #all: string
  /** By the first line of a group. */
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  readonly #flags: Int32Array
  /** Where the texts were in the kernel. */
  readonly #output: number
  readonly #isError: number

  /** @param firsts for each line, the first line of its group @param keyCount of the keys that the kernel has */
  constructor(kernel: Kernel, firsts: Int32Array, keyCount: number) {
    const count = firsts.length
    kernel.joined.set(firsts)
    const end = kernel.call.listGroups(keyCount, count, maxText)
    this.#output = kernel.at('output')
    this.#all = kernel.memory.latin1Slice(this.#output, end)
    this.#starts = kernel.textStarts.slice(0, count)
    this.#ends = kernel.textEnds.slice(0, count)
    this.#flags = kernel.flags.slice(0, count)
    this.#isError = kernel.at('isError')
  }

  /** The text of a group, by its first line; undefined if it is very long. */
  of(first: number, byStream: boolean): string | undefined {
    const start = this.#starts[first] as number
    if (start < 0) return undefined
    const text = this.#all.slice(start - this.#output, (this.#ends[first] as number) - this.#output)
    return byStream && ((this.#flags[first] as number) & this.#isError) !== 0 ? `${text}stderr` : text
  }
}
