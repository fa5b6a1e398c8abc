// What the command lines of both programs share, `penstock-agent` and `penstock`: the first words, the search for a command, flags that
// every command takes, and the text of a fault. Loaded by `--version`, so it imports little.
//
// Each program reads the flags of its commands by its own parser. The agent's (args.ts) takes values from the environment, repeated flags
// and short names of two letters, as agents before it did; `node:util` has none of these. That of `penstock` refuses a value that looks like
// a flag, as `node:util` does, because `lint -f --recursive` is a mistake.

import { errorText, PenstockError } from '../errors.ts'
import { closest } from '../schema/problems.ts'
import { colorChoices } from '../terminal.ts'
import type { CompletionFlag } from './completion.ts'

export interface FirstWords {
  /** Errors have a stack. */
  readonly isDebug: boolean
  /** What is asked of the program itself. */
  readonly asks: 'help' | 'version' | undefined
  /** The words without `--debug`. */
  readonly words: readonly string[]
}

/** Reads what is meant for the program and not for a command. */
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
 */
export function commandNamed<C>(
  program: string,
  commands: Readonly<Record<string, C>>,
  name: string,
  quote: '"' | '`',
): C {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command !== undefined) return command
  const near = closest(name, Object.keys(commands))
  const hint = near === undefined ? `See ${quote}${program} --help${quote}.` : `Did you mean ${quote}${near}${quote}?`
  throw new PenstockError('PEN_USAGE', `There is no command ${quote}${name}${quote}. ${hint}`)
}

/** The report of an error that Penstock does not expect. */
export function faultText(error: unknown): string {
  return `A fault of Penstock itself: ${errorText(error)}\nWith --debug it shows where.`
}

/** A flag as the tables of either program have it. */
interface DeclaredFlag {
  readonly type: string
  readonly short?: string | undefined
  readonly help?: string | undefined
  readonly oneOf?: readonly string[] | undefined
}

/** Flags that every command takes. */
const ofEveryCommand: Readonly<Record<string, DeclaredFlag>> = {
  help: { type: 'boolean', help: 'Print this text.' },
  color: { type: 'string', oneOf: colorChoices, help: 'Whether to colour (auto).' },
  debug: { type: 'boolean', help: 'Print the stack of an error.' },
}

/** The flags of a command as completion offers them, with those of every command. */
export function completionFlags(table: Readonly<Record<string, DeclaredFlag>>): readonly CompletionFlag[] {
  return Object.entries({ ...table, ...ofEveryCommand, ...table }).map(([name, { type, short, help = '', oneOf }]) => ({
    name,
    short,
    help,
    takesValue: type !== 'boolean' && type !== 'count',
    values: oneOf,
  }))
}
