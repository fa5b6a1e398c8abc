// Flags of a command, declared in a table. Parsing, the environment variables, the help text and completion follow from it, for both
// programs. `node:util` splits the command line; this file adds lists from the environment, numbers, counted flags, short names of two
// letters, and refuses flags that have no effect.

import { type ParseArgsOptionDescriptor, parseArgs } from 'node:util'
import { PenstockError } from '../errors.ts'
import { closest } from '../schema/problems.ts'

export interface Flag {
  readonly type: 'boolean' | 'string'
  /** May be repeated: the value is a list, or the number of times that a flag without a value is given. */
  readonly multiple?: boolean
  readonly short?: string
  readonly default?: string | boolean
  /** Environment variable that gives the value if the command line does not. A list is separated by commas. */
  readonly env?: string
  /** Word for the value in the help text. */
  readonly value?: string
  /** For the help text; it may have several lines. */
  readonly help: string
  /** The only values, if there are few; of a list, those of each item. */
  readonly oneOf?: readonly string[]
  /** The value is a number; `whole`: one without a fraction. */
  readonly number?: 'any' | 'whole'
  /** Smallest number. */
  readonly minimum?: number
  /** The flag without which this one has no effect, so that it is refused. */
  readonly needs?: string
  /** The flag beside which this one has no effect and is refused. */
  readonly replacedBy?: string
}

export type Flags = Readonly<Record<string, Flag>>

type TextValue<F extends Flag> = F['oneOf'] extends readonly (infer V)[] ? V : string

type FlagValue<F extends Flag> = F extends { type: 'boolean' }
  ? F extends { multiple: true }
    ? number
    : boolean
  : F extends { multiple: true }
    ? TextValue<F>[]
    : F extends { number: string }
      ? number | undefined
      : F extends { default: string }
        ? TextValue<F>
        : TextValue<F> | undefined

export interface ParsedArgs<F extends Flags> {
  readonly flags: { readonly [K in keyof F]: FlagValue<F[K]> }
  readonly words: readonly string[]
}

/** How a program reads a command line where the two differ, and the words of its messages. */
export interface Dialect {
  /** Refuses a value that looks like a flag, because `lint -f --recursive` is a mistake. */
  readonly refusesFlagsAsValues: boolean
  /** @param near the name that may have been meant */
  unknownFlag(shown: string, near: string | undefined): string
  /** @param shown the flag with its long name, or the environment variable */
  notOneOf(shown: string, found: string, allowed: readonly string[]): string
}

const agentDialect: Dialect = {
  // Agents before this one took such values.
  refusesFlagsAsValues: false,
  unknownFlag: (shown, near) =>
    `There is no flag ${shown}. ${near === undefined ? 'See --help.' : `Did you mean ${near}?`}`,
  notOneOf: (shown, found, allowed) => `${shown} is "${found}"; it must be one of ${allowed.join(', ')}.`,
}

/** Reads a command line; `words` are the arguments that are not flags. Throws PEN_USAGE for the first mistake. */
export function parseFlags<const F extends Flags>(
  argv: readonly string[],
  table: F,
  dialect: Dialect = agentDialect,
): ParsedArgs<F> {
  const args = withLongNames(argv, table)
  const options = nodeOptions(table)
  const { tokens } = parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true })
  const given = tokens.filter((token) => token.kind === 'option')
  const stray = given.find(({ name }) => !Object.hasOwn(table, name))
  if (stray !== undefined) throw misuse(dialect.unknownFlag(stray.rawName, nearestFlag(stray.rawName, table)))

  const values: Record<string, unknown> = {}
  for (const { name, rawName, value, inlineValue } of given) {
    const flag = table[name] as Flag
    if (flag.type === 'boolean') {
      if (value !== undefined) throw misuse(`${rawName} takes no value.`)
      values[name] = flag.multiple === true ? ((values[name] as number | undefined) ?? 0) + 1 : true
      continue
    }
    if (value === undefined) throw misuse(`${rawName} needs a value.`)
    if (dialect.refusesFlagsAsValues && inlineValue === false && /^-./.test(value))
      throw misuse(`${rawName} needs a value, and ${value} looks like a flag. If it is meant: --${name}=${value}.`)
    // `-f=yaml`: node:util counts the equals sign of a short name to the value.
    const text = inlineValue === true && !rawName.startsWith('--') ? value.replace(/^=/, '') : value
    const read = flagValue(flag, `--${name}`, text, dialect)
    values[name] = flag.multiple === true ? [...((values[name] as unknown[] | undefined) ?? []), read] : read
  }

  const fromLine = new Set(Object.keys(values))
  for (const [name, flag] of Object.entries(table)) values[name] ??= fromEnvironment(flag, dialect) ?? unset(flag)
  refuseUseless(table, values, fromLine)
  const words = tokens.filter((token) => token.kind === 'positional').map(({ value }) => value)
  return { flags: values, words } as unknown as ParsedArgs<F>
}

function misuse(problem: string): PenstockError {
  return new PenstockError('PEN_USAGE', problem)
}

/** The table as `node:util` takes it, which knows short names of one letter only. */
function nodeOptions(table: Flags): Record<string, ParseArgsOptionDescriptor> {
  return Object.fromEntries(
    Object.entries(table).map(([name, { type, short, multiple = false }]) => [
      name,
      { type, multiple, ...(short?.length === 1 ? { short } : {}) },
    ]),
  )
}

/** A command line with `--timezone` for `-tz`. */
function withLongNames(argv: readonly string[], table: Flags): string[] {
  const long = new Map(
    Object.entries(table).flatMap(([name, { short = '' }]) => (short.length > 1 ? [[`-${short}`, `--${name}`]] : [])),
  )
  const end = argv.indexOf('--')
  return argv.map((word, at) => (end >= 0 && at > end ? word : (long.get(word) ?? word)))
}

function nearestFlag(shown: string, table: Flags): string | undefined {
  return closest(
    shown,
    Object.keys(table).map((name) => `--${name}`),
  )
}

/** A flag that has no effect beside the others is an error, because users would rely on it. */
function refuseUseless(table: Flags, values: Readonly<Record<string, unknown>>, fromLine: ReadonlySet<string>): void {
  const isGiven = (name: string) => isValue(values[name])
  for (const [name, { needs, replacedBy, env }] of Object.entries(table)) {
    if (!isGiven(name)) continue
    const shown = fromLine.has(name) || env === undefined ? `--${name}` : env
    if (needs !== undefined && !isGiven(needs)) throw misuse(`${shown} needs --${needs}; without it, it has no effect.`)
    if (replacedBy !== undefined && isGiven(replacedBy))
      throw misuse(`${shown} has no effect with --${replacedBy}. Omit one of them.`)
  }
}

/** Whether a flag was given: an empty text is none, so that a template may leave a variable empty. */
function isValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return value !== undefined && value !== false && value !== ''
}

/** The value of a flag that neither the command line nor the environment gives. */
function unset(flag: Flag): unknown {
  if (flag.type === 'boolean') return flag.multiple === true ? 0 : (flag.default ?? false)
  return flag.multiple === true ? [] : flag.default
}

function fromEnvironment(flag: Flag, dialect: Dialect): unknown {
  const text = flag.env === undefined ? undefined : process.env[flag.env]
  if (text === undefined || text === '') return undefined
  if (flag.type === 'boolean') return !['0', 'false', 'no'].includes(text.toLowerCase())
  if (flag.multiple === true) return text.split(',').map((part) => part.trim())
  return flagValue(flag, flag.env as string, text, dialect)
}

function flagValue(flag: Flag, shown: string, text: string, dialect: Dialect): string | number {
  if (flag.oneOf !== undefined && !flag.oneOf.includes(text)) throw misuse(dialect.notOneOf(shown, text, flag.oneOf))
  if (flag.number === undefined) return text
  const number = Number(text)
  const isOne = flag.number === 'whole' ? Number.isSafeInteger(number) : Number.isFinite(number)
  if (text.trim() === '' || !isOne || number < (flag.minimum ?? 0)) {
    const expected = `a ${flag.number === 'whole' ? 'whole ' : ''}number from ${flag.minimum ?? 0}`
    throw misuse(`${shown} is "${text}"; it must be ${expected}.`)
  }
  return number
}

/** Where descriptions begin at most: a flag with a longer name has its description in the next line. */
const mostNameColumns = 30

/** Longer lists of words are left to the description of a flag. */
const mostChoices = 30

/** The word for the value of a flag: the values themselves, if they are few and short. */
function valueWord({ value, oneOf = [], number }: Flag): string {
  if (value !== undefined) return value
  const choices = oneOf.join('|')
  if (choices !== '' && choices.length <= mostChoices) return choices
  return number === undefined ? 'VALUE' : 'N'
}

/**
 * The lines of a help text that describe the flags, one for each; `helpText` fits them to what shows them.
 * @param column where the descriptions begin; then a flag without a short name stands at the left, too
 */
export function flagHelp(table: Flags, column?: number): string {
  const rows = Object.entries(table).map(([name, flag]) => {
    const short = flag.short !== undefined ? `-${flag.short}, ` : column === undefined ? '    ' : ''
    const value = flag.type === 'boolean' ? '' : ` ${valueWord(flag)}`
    const env = flag.env === undefined ? '' : ` [${flag.env}]`
    return [`  ${short}--${name}${value}`, `${flag.help}${env}`] as const
  })
  const width = column ?? Math.min(mostNameColumns, Math.max(...rows.map(([left]) => left.length)) + 2)
  const indent = `\n${' '.repeat(width)}`
  return rows
    .map(([left, right]) => `${left.length > width - 2 ? left + indent : left.padEnd(width)}${right}`)
    .join('\n')
}
