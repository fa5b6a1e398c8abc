// Texts that identify the groups of the lines in the kernel: the members by which the lines are compared, as bytes. Two lines of one
// origin with the same text have equal members.

import type { Kernel } from './kernel.ts'

/** Maximum length of a text. */
const maxText = 4096

export class GroupTexts {
  /** By the first line of a group. */
  readonly #texts = new Map<number, string>()

  /**
   * @param firsts for each line, the first line of its group @param keyCount of the keys that the kernel has @param byStream whether the
   * groups also differ in the output stream
   */
  constructor(kernel: Kernel, firsts: Int32Array, keyCount: number, byStream: boolean) {
    kernel.joined.set(firsts)
    const end = kernel.call.listGroups(keyCount, firsts.length, maxText)
    const { flags, textStarts, textEnds } = kernel
    const output = kernel.at('output')
    const isError = byStream ? kernel.at('isError') : 0
    const all = kernel.memory.latin1Slice(output, end)
    for (let line = 0; line < firsts.length; line++) {
      if (firsts[line] !== line) continue
      const start = textStarts[line] as number
      if (start < 0) continue
      const text = all.slice(start - output, (textEnds[line] as number) - output)
      this.#texts.set(line, ((flags[line] as number) & isError) === 0 ? text : `${text}stderr`)
    }
  }

  /** The text of a group, by its first line; undefined if it is very long. */
  of(first: number): string | undefined {
    return this.#texts.get(first)
  }
}
