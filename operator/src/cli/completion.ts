// `penstock completion SHELL`: prints a completion script, derived from the commands and their flags.

import { PenstockError } from '@penstock/agent/errors'
import { type CompletionCommand, completionScript, referencePages, shells } from '@penstock/agent/output'
import { completionFlags, type Flags } from '@penstock/agent/program'
import { parseFlags } from './arguments.ts'
import { completionLines } from './complete.ts'

/** A file of `cli/`. */
export interface CommandModule {
  readonly usage: string
  readonly options: Flags
  /** Words that may follow the name of the command, for completion. */
  readonly words?: readonly string[]
  run(argv: string[]): Promise<number>
}

export interface ListedCommand {
  /** The section of the help that lists it. */
  readonly group: 'files' | 'cluster' | 'installation' | 'program'
  readonly about: string
  readonly load: () => Promise<CommandModule>
}

const usage = `Usage: penstock completion ${shells.join('|')}

Prints a completion script for a shell: source <(penstock completion bash)
`

/** The command in this file. */
export function completionOf(commands: Readonly<Record<string, ListedCommand>>): CommandModule {
  const options = {}
  return {
    usage,
    options,
    async run(argv) {
      const { words } = parseFlags(argv, options, 'words')
      const shell = shells.find((each) => each === words[0])
      if (shell === undefined || words.length > 1) {
        throw new PenstockError('PEN_USAGE', `Name a shell: penstock completion ${shells.join('|')}.`)
      }
      process.stdout.write(completionScript(shell, 'penstock', [], await described(commands)))
      return 0
    },
  }
}

/**
 * Prints the completions for kubectl. @param before the arguments, with the command first @param typed the word being
 * typed
 */
export async function complete(
  before: readonly string[],
  typed: string,
  commands: Readonly<Record<string, ListedCommand>>,
): Promise<number> {
  process.stdout.write(completionLines(before, typed, await described(commands)))
  return 0
}

function described(commands: Readonly<Record<string, ListedCommand>>): Promise<CompletionCommand[]> {
  return Promise.all(
    Object.entries(commands).map(async ([name, { about, load }]): Promise<CompletionCommand> => {
      const { options, words = [] } = name === 'completion' ? { options: {}, words: shells } : await load()
      const pages = name === 'explain' ? await referencePages() : []
      return {
        name,
        help: about,
        flags: completionFlags(options),
        words: [...words, ...pages.flatMap((page) => page.names)],
      }
    }),
  )
}
