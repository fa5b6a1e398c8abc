// `penstock __complete WORDS…`: the completions that kubectl offers after `kubectl penstock WORDS…` and Tab. Its program
// `kubectl_complete-penstock` calls this. The last word is being typed, and may be empty.

import type { CompletionCommand, CompletionFlag } from '@penstock/agent/output'

/** How the shell continues, in the numbering of kubectl's completion scripts. */
const directives = { filesToo: 0, theseOnly: 4 } as const

interface Offer {
  readonly word: string
  readonly help?: string | undefined
}

const offersOf = (flags: readonly CompletionFlag[]): Offer[] =>
  flags.map(({ name, help }) => ({ word: `--${name}`, help }))

/** The flag in a word such as `--output`, `--output=x` or `-o`. */
function flagOf(word: string, flags: readonly CompletionFlag[]): CompletionFlag | undefined {
  const name = word.split('=')[0]
  return flags.find((flag) => name === `--${flag.name}` || (flag.short !== undefined && name === `-${flag.short}`))
}

/**
 * @param before the arguments after `kubectl penstock`, with the command first @param typed the word being typed
 * @returns lines with a word, a tab and its meaning; the last line is a colon and a number for the shell
 */
export function completionLines(
  before: readonly string[],
  typed: string,
  commands: readonly CompletionCommand[],
): string {
  const { offers, directive } = offered(before, typed, commands)
  const lines = offers
    .filter(({ word }) => word.startsWith(typed))
    .map(({ word, help }) => (help === undefined ? word : `${word}\t${help}`))
  return [...lines, `:${directive}`, ''].join('\n')
}

interface Offers {
  readonly offers: readonly Offer[]
  readonly directive: number
}

function offered(before: readonly string[], typed: string, commands: readonly CompletionCommand[]): Offers {
  const command = commands.find(({ name }) => name === before[0])
  const flags = command?.flags ?? commands.flatMap((each) => each.flags)
  const isInline = /^--.*=/.test(typed)
  const previous = before.at(-1) ?? ''
  const asked = flagOf(isInline ? typed : previous, flags)
  if (asked?.takesValue === true && (isInline || !previous.includes('='))) {
    const offers = (asked.values ?? []).map((value) => ({ word: isInline ? `--${asked.name}=${value}` : value }))
    return { offers, directive: asked.values === undefined ? directives.filesToo : directives.theseOnly }
  }
  if (command === undefined)
    return { offers: commands.map(({ name, help }) => ({ word: name, help })), directive: directives.theseOnly }
  if (typed.startsWith('-')) return { offers: offersOf(flags), directive: directives.theseOnly }
  if (command.words.length === 0) return { offers: [], directive: directives.filesToo }
  return { offers: command.words.map((word) => ({ word })), directive: directives.theseOnly }
}
