// Shared by the command lines of both programs, `penstock-agent` and `penstock`: the first words, the search for a command, flags that
// every command takes, and the text of a fault. `--version` loads it, so it imports little. flags.ts reads the flags of a command.

import { errorText, PenstockError } from '../errors.ts'
import { closest } from '../schema/problems.ts'
import { colorChoices } from '../terminal.ts'
import type { CompletionFlag } from './completion.ts'
import type { Flags } from './flags.ts'

export interface FirstWords {
  /** Errors have a stack. */
  readonly isDebug: boolean
  /** Requests to the program itself. */
  readonly asks: 'help' | 'version' | undefined
  /** The words without `--debug`. */
  readonly words: readonly string[]
}

/** Reads the words for the program that belong to no command. */
export function firstWords(argv: readonly string[]): FirstWords {
  const words = argv.filter((word) => word !== '--debug')
  const [first] = words
  const asks =
    first === '--help' || first === '-h' ? 'help' : first === '--version' || first === '-V' ? 'version' : undefined
  return { isDebug: words.length < argv.length, asks, words }
}

/**
 * The command with a name; throws PEN_USAGE with the name that may have been meant.
 * @param quote as the messages of the program quote names
 * @param onPath the remedy where a path stands in place of a command
 */
export function commandNamed<C>(
  program: string,
  commands: Readonly<Record<string, C>>,
  name: string,
  quote: '"' | '`',
  onPath?: (path: string) => string,
): C {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command !== undefined) return command
  if (onPath !== undefined && isPathLike(name))
    throw new PenstockError('PEN_USAGE', `There is no command ${quote}${name}${quote}. ${onPath(name)}`)
  const near = closest(name, Object.keys(commands))
  const hint = near === undefined ? `See ${quote}${program} --help${quote}.` : `Did you mean ${quote}${near}${quote}?`
  throw new PenstockError('PEN_USAGE', `There is no command ${quote}${name}${quote}. ${hint}`)
}

/** Whether a word can be a path, and no command: it has a slash or an ending. */
export const isPathLike = (word: string): boolean => !word.startsWith('-') && /[\\/]|\.\w+$/.test(word)

/** The report of an error that Penstock does not expect. */
export function faultText(error: unknown): string {
  return `A fault of Penstock itself: ${errorText(error)}\nWith --debug it shows where.`
}

/** Flags that every command takes. */
const ofEveryCommand: Flags = {
  help: { type: 'boolean', help: 'Print this text.' },
  color: { type: 'string', oneOf: colorChoices, help: 'Whether to colour (auto).' },
  debug: { type: 'boolean', help: 'Print the stack of an error.' },
}

/** The flags of a command as completion offers them, with those of every command. */
export function completionFlags(table: Flags): readonly CompletionFlag[] {
  return Object.entries({ ...table, ...ofEveryCommand, ...table }).map(([name, { type, short, help, oneOf }]) => ({
    name,
    short,
    help: help.replaceAll('\n', ' '),
    takesValue: type === 'string',
    values: oneOf,
  }))
}
