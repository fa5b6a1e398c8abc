// The common command-line code of `penstock-agent` and `penstock`: global flags, the lookup of a command, flags that every command
// accepts, and the report of an internal error. `--version` loads this file, so it imports little. flags.ts parses the flags of a command.

import { errorText, PenstockError } from '../errors.ts'
import { closest } from '../schema/problems.ts'
import { colorChoices } from '../terminal.ts'
import type { CompletionFlag } from './completion.ts'
import { exitCodes } from './exit-codes.ts'
import type { Flags } from './flags.ts'

export interface FirstWords {
  /** Whether to print the stack of errors. */
  readonly isDebug: boolean
  /** A request to the program itself. */
  readonly asks: 'help' | 'version' | undefined
  /** The remaining words, without `--debug`. */
  readonly words: readonly string[]
}

/** Reads the words that belong to the program and not to a command. */
export function firstWords(argv: readonly string[]): FirstWords {
  const words = argv.filter((word) => word !== '--debug')
  const [first] = words
  const asks =
    first === '--help' || first === '-h' ? 'help' : first === '--version' || first === '-V' ? 'version' : undefined
  return { isDebug: words.length < argv.length, asks, words }
}

/**
 * Looks up a command; throws PEN_USAGE with a suggestion if it does not exist.
 * @param onPath returns advice for a user who wrote a path instead of a command
 */
export function commandNamed<C>(
  program: string,
  commands: Readonly<Record<string, C>>,
  name: string,
  onPath?: (path: string) => string,
): C {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command !== undefined) return command
  if (onPath !== undefined && isPathLike(name))
    throw new PenstockError('PEN_USAGE', `There is no command \`${name}\`. ${onPath(name)}`)
  if (name.startsWith('-'))
    throw new PenstockError('PEN_USAGE', `Expected a command; found the flag \`${name}\`. See \`${program} --help\`.`)
  const near = closest(name, Object.keys(commands))
  const hint = near === undefined ? `See \`${program} --help\`.` : `Did you mean \`${near}\`?`
  throw new PenstockError('PEN_USAGE', `There is no command \`${name}\`. ${hint}`)
}

/** Whether a word looks like a path instead of a command, because it contains a slash or a file extension. */
export const isPathLike = (word: string): boolean => !word.startsWith('-') && /[\\/]|\.\w+$/.test(word)

/** Ends a command whose reader is gone: `penstock list | head -1` is not an error. A command that handles this itself continues. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    if (process.stdout.listenerCount('error') === 1) process.exit(exitCodes.ok)
  })
}

/** The report of an internal error. */
export function faultText(error: unknown): string {
  return `Internal error in Penstock: ${errorText(error)}\nRun the command with --debug to print the stack.`
}

/** Flags that every command accepts. */
const ofEveryCommand: Flags = {
  help: { type: 'boolean', help: 'Print this text.' },
  color: { type: 'string', oneOf: colorChoices, help: 'Whether to colour the output (auto).' },
  debug: { type: 'boolean', help: 'Print the stack of an error.' },
}

/** The flags that completion offers for a command, including those of every command. */
export function completionFlags(table: Flags): readonly CompletionFlag[] {
  return Object.entries({ ...table, ...ofEveryCommand, ...table }).map(([name, { type, short, help, oneOf }]) => ({
    name,
    short,
    help: help.replaceAll('\n', ' '),
    takesValue: type === 'string',
    values: oneOf,
  }))
}
