// `completion SHELL`: prints a completion script. Flags come from the commands, names from the registry.

import {
  type CompletionCommand,
  type CompletionFlag,
  completionScript,
  type Shell,
  shells,
} from '../command-line/completion.ts'
import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { completionFlags } from '../command-line/program.ts'
import { PenstockError } from '../errors.ts'
import { components } from '../registry.ts'
import { type Command, commands } from './commands.ts'
import { kindWords } from './list.ts'
import { referencePages } from './pages.ts'

export const flags = {
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

/** The command in this file. */
const self: Command = { load: async () => ({ run, flags }), help: 'Print a completion script for a shell.' }

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(
      helpText(
        `Usage: penstock-agent completion ${shells.join('|')}\n\nPrints a completion script for a shell: source <(penstock-agent completion bash)\n\n${flagHelp(flags)}\n`,
      ),
    )
    return exitCodes.ok
  }
  const shell = words[0] as Shell | undefined
  if (shell === undefined || words.length > 1 || !shells.includes(shell)) {
    throw new PenstockError('PEN_USAGE', `Name a shell: penstock-agent completion ${shells.join('|')}.`)
  }
  const described: CompletionCommand[] = []
  for (const [name, command] of Object.entries({ ...commands, completion: self })) {
    if (command.alias) continue
    described.push({ name, help: command.help, flags: await flagsOf(command), words: wordsOf(name) })
  }
  const root = described.find((command) => command.name === 'run')?.flags ?? []
  process.stdout.write(completionScript(shell, 'penstock-agent', root, described))
  return exitCodes.ok
}

async function flagsOf(command: Command): Promise<readonly CompletionFlag[]> {
  const { flags, flagTable } = await command.load()
  return completionFlags(flags ?? flagTable ?? {})
}

function wordsOf(command: string): readonly string[] {
  if (command === 'completion') return shells
  if (command === 'buffer') return ['inspect']
  if (command === 'list') return kindWords
  if (command === 'explain') return referencePages().flatMap((page) => page.names)
  if (command === 'generate') return components.map((component) => component.type)
  return []
}
