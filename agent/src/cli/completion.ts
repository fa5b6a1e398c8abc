// `completion SHELL`: prints a completion script. Flags come from the commands themselves, names from the registry.

import { PenstockError } from '../errors.ts'
import { components } from '../registry.ts'
import {
  type CompletionCommand,
  type CompletionFlag,
  completionScript,
  type Shell,
  shells,
} from '../schema/completion.ts'
import { type Flags, flagHelp, parseArgs } from './args.ts'
import { exitCodes } from './exit-codes.ts'
import { referencePages } from './pages.ts'

export const flags = {
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

const commands = [
  { name: 'run', help: 'Run the agent.' },
  { name: 'validate', help: 'Check a configuration without running it.' },
  { name: 'test', help: 'Run the unit tests of a configuration.' },
  { name: 'graph', help: 'Print the topology of a configuration.' },
  { name: 'list', help: 'List the types of components.' },
  { name: 'explain', help: 'Print a page of the reference.' },
  { name: 'remap', help: 'Evaluate a remap program.' },
  { name: 'tap', help: 'Show events that pass through a running agent.' },
  { name: 'top', help: 'Show what the components of a running agent do.' },
  { name: 'buffer', help: 'Look into a disk buffer.' },
  { name: 'generate', help: 'Print a skeleton of a configuration, or its JSON Schema.' },
  { name: 'completion', help: 'Print a completion script for a shell.' },
] as const

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseArgs(argv, flags)
  if (given.help) {
    process.stdout.write(`Usage: penstock-agent completion ${shells.join('|')}\n\n${flagHelp(flags)}\n`)
    return exitCodes.ok
  }
  const shell = words[0] as Shell | undefined
  if (shell === undefined || words.length > 1 || !shells.includes(shell)) {
    throw new PenstockError('PEN_USAGE', `Name a shell: penstock-agent completion ${shells.join('|')}.`)
  }
  const described: CompletionCommand[] = []
  for (const { name, help } of commands) {
    described.push({ name, help, flags: await flagsOf(name), words: wordsOf(name) })
  }
  const root = described.find((command) => command.name === 'run')?.flags ?? []
  process.stdout.write(completionScript(shell, 'penstock-agent', root, described))
  return exitCodes.ok
}

/** Sources run as they are, images run compiled files. */
const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

async function flagsOf(command: string): Promise<readonly CompletionFlag[]> {
  const module = (await import(new URL(`./${command}${extension}`, import.meta.url).href)) as {
    flags?: Flags
    flagTable?: Flags
    configFlags?: Flags
  }
  const table = module.flags ?? module.flagTable ?? module.configFlags ?? {}
  return Object.entries(table).map(([name, flag]) => ({
    name,
    short: flag.short,
    help: flag.help,
    takesValue: flag.type !== 'boolean' && flag.type !== 'count',
    values: flag.oneOf,
  }))
}

function wordsOf(command: string): readonly string[] {
  if (command === 'completion') return shells
  if (command === 'buffer') return ['inspect']
  if (command === 'explain') return referencePages().flatMap((page) => page.names)
  if (command === 'generate') return components.map((component) => component.type)
  return []
}
