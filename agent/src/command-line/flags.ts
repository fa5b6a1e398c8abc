// The flags of a command are declared in a table. For both programs, parsing, environment variables, the help text and completion derive
// from it. `node:util` splits the command line. This file adds lists from the environment, numbers, counted flags and short names of two
// letters, and rejects flags that have no effect.

import { type ParseArgsOptionDescriptor, parseArgs } from 'node:util'
import { PenstockError } from '../errors.ts'
import { closest } from '../schema/problems.ts'

export interface Flag {
  readonly type: 'boolean' | 'string'
  /** Whether the flag may be repeated. Its value is a list, or for a flag without a value, the number of repetitions. */
  readonly multiple?: boolean
  readonly short?: string
  readonly default?: string | boolean
  /** Environment variable with the value, if the command line does not set it. Commas separate the items of a list. */
  readonly env?: string
  /** Placeholder for the value in the help text. */
  readonly value?: string
  /** Description for the help text, which may have several lines. */
  readonly help: string
  /** The possible values, or for a list, the possible values of each item. */
  readonly oneOf?: readonly string[]
  /** Whether the value is a number; `whole` allows no fraction. */
  readonly number?: 'any' | 'whole'
  /** The minimum number. */
  readonly minimum?: number
  /** Another flag without which this one has no effect and is rejected. */
  readonly needs?: string
  /** Another flag with which this one has no effect and is rejected. */
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

/** The differences between the two programs: how they parse a command line, and the text of their messages. */
export interface Dialect {
  /** Whether to reject a value that looks like a flag, because `lint -f --recursive` is a mistake. */
  readonly refusesFlagsAsValues: boolean
  /** @param near the most similar flag */
  unknownFlag(shown: string, near: string | undefined): string
  /** @param shown the flag with its long name, or the environment variable */
  notOneOf(shown: string, found: string, allowed: readonly string[]): string
}

const agentDialect: Dialect = {
  // Earlier agents accepted such values.
  refusesFlagsAsValues: false,
  unknownFlag: (shown, near) =>
    `There is no flag \`${shown}\`. ${near === undefined ? 'See `--help`.' : `Did you mean \`${near}\`?`}`,
  notOneOf: (shown, found, allowed) => `${shown} is "${found}"; it must be one of ${allowed.join(', ')}.`,
}

/** Parses a command line. `words` are the arguments that are not flags. Throws PEN_USAGE for the first mistake. */
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
    if (value === undefined) {
      const allowed = flag.oneOf === undefined ? '' : `: one of ${flag.oneOf.join(', ')}`
      throw misuse(`${rawName} needs a value${allowed}.`)
    }
    if (dialect.refusesFlagsAsValues && inlineValue === false && /^-./.test(value))
      throw misuse(
        `${rawName} needs a value, but ${value} looks like a flag. If ${value} is the value, write --${name}=${value}.`,
      )
    // For `-f=yaml`, node:util includes the equals sign in the value.
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

/** The table in the form for `node:util`, which supports only short names of one letter. */
function nodeOptions(table: Flags): Record<string, ParseArgsOptionDescriptor> {
  return Object.fromEntries(
    Object.entries(table).map(([name, { type, short, multiple = false }]) => [
      name,
      { type, multiple, ...(short?.length === 1 ? { short } : {}) },
    ]),
  )
}

/** Replaces short names of two letters, such as `-tz`, by long names, such as `--timezone`. */
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

/** Rejects flags that have no effect, because users would rely on them. */
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

/** Whether a flag is set. An empty text does not count, so that a template may leave a variable empty. */
function isValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return value !== undefined && value !== false && value !== ''
}

/** The value of a flag that neither the command line nor the environment sets. */
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

/** Maximum column at which descriptions begin. If a flag is longer, its description is on the next line. */
const maxNameColumns = 30

/** Maximum length of a list of possible values. The description of a flag must contain longer lists. */
const maxChoicesLength = 30

/** The placeholder for the value of a flag: the possible values, if they are short. */
function valueWord({ value, oneOf = [], number }: Flag): string {
  if (value !== undefined) return value
  const choices = oneOf.join('|')
  if (choices !== '' && choices.length <= maxChoicesLength) return choices
  return number === undefined ? 'VALUE' : 'N'
}

/**
 * The lines of a help text that describe the flags, one line for each. `helpText` wraps them to the width of the terminal.
 * @param column where the descriptions begin; if set, flags without a short name are not indented
 */
export function flagHelp(table: Flags, column?: number): string {
  const rows = Object.entries(table).map(([name, flag]) => {
    const short = flag.short !== undefined ? `-${flag.short}, ` : column === undefined ? '    ' : ''
    const value = flag.type === 'boolean' ? '' : ` ${valueWord(flag)}`
    const env = flag.env === undefined ? '' : ` [${flag.env}]`
    return [`  ${short}--${name}${value}`, `${flag.help}${env}`] as const
  })
  const width = column ?? Math.min(maxNameColumns, Math.max(...rows.map(([left]) => left.length)) + 2)
  const indent = `\n${' '.repeat(width)}`
  return rows
    .map(([left, right]) => `${left.length > width - 2 ? left + indent : left.padEnd(width)}${right}`)
    .join('\n')
}
