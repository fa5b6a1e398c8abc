// Flags of the command line: declared in a table, from which parsing, the environment names and the help text follow.

import { PenstockError } from '../errors.ts'
import { closest } from '../schema/problems.ts'

export interface Flag {
  /** `list` takes a value and may be repeated; `count` takes none and may be repeated. */
  readonly type: 'boolean' | 'count' | 'string' | 'number' | 'list'
  readonly short?: string
  /** Environment variable that gives the value if the command line does not. A list is separated by commas. */
  readonly env?: string
  /** Word for the value in the help text. */
  readonly value?: string
  readonly help: string
  /** The only values, if there are few; of a list, those of each item. */
  readonly oneOf?: readonly string[]
  /** Smallest number. */
  readonly minimum?: number
  /** A number without fraction. */
  readonly whole?: boolean
  /** The flag without which this one has no effect, so that it is refused. */
  readonly needs?: string
  /** The flag beside which this one has no effect, so that it is refused. */
  readonly replacedBy?: string
}

export type Flags = Readonly<Record<string, Flag>>

type FlagValue<F extends Flag> = F['type'] extends 'boolean'
  ? boolean
  : F['type'] extends 'count'
    ? number
    : F['type'] extends 'list'
      ? string[]
      : F['type'] extends 'number'
        ? number | undefined
        : string | undefined

export interface ParsedArgs<F extends Flags> {
  readonly flags: { readonly [K in keyof F]: FlagValue<F[K]> }
  readonly words: readonly string[]
}

/** Reads a command line; `words` are what is not a flag. Throws PEN_USAGE for what is not understood. */
export function parseArgs<const F extends Flags>(argv: readonly string[], table: F): ParsedArgs<F> {
  const values: Record<string, unknown> = {}
  const words: string[] = []
  const shorts = new Map(Object.entries(table).map(([name, flag]) => [flag.short, name]))
  let at = 0

  const take = (name: string, shown: string, attached: string | undefined) => {
    const flag = table[name] as Flag
    if (flag.type === 'boolean' || flag.type === 'count') {
      if (attached !== undefined) throw new PenstockError('PEN_USAGE', `${shown} takes no value.`)
      values[name] = flag.type === 'count' ? ((values[name] as number | undefined) ?? 0) + 1 : true
      return
    }
    const text = attached ?? argv[at++]
    if (text === undefined) throw new PenstockError('PEN_USAGE', `${shown} needs a value.`)
    const value = flagValue(flag, shown, text)
    values[name] = flag.type === 'list' ? [...((values[name] as string[] | undefined) ?? []), value] : value
  }

  while (at < argv.length) {
    const word = argv[at++] as string
    if (word === '--') {
      words.push(...argv.slice(at))
      break
    }
    if (word.startsWith('--')) {
      const equals = word.indexOf('=')
      const name = equals < 0 ? word.slice(2) : word.slice(2, equals)
      if (!Object.hasOwn(table, name))
        throw unknownFlag(
          `--${name}`,
          Object.keys(table).map((known) => `--${known}`),
        )
      take(name, `--${name}`, equals < 0 ? undefined : word.slice(equals + 1))
    } else if (word.length > 1 && word.startsWith('-')) {
      shortFlags(word.slice(1))
    } else {
      words.push(word)
    }
  }

  function shortFlags(letters: string): void {
    // `-tz` and the like: a short name may have more than one letter.
    const whole = shorts.get(letters)
    if (whole !== undefined) {
      take(whole, `-${letters}`, undefined)
      return
    }
    for (let index = 0; index < letters.length; index++) {
      const letter = letters[index] as string
      const name = shorts.get(letter)
      if (name === undefined) throw unknownFlag(`-${letter}`, [])
      const flag = table[name] as Flag
      if (flag.type === 'boolean' || flag.type === 'count') {
        take(name, `-${letter}`, undefined)
      } else {
        const rest = letters.slice(index + 1).replace(/^=/, '')
        take(name, `-${letter}`, rest === '' ? undefined : rest)
        return
      }
    }
  }

  const fromLine = new Set(Object.keys(values))
  for (const [name, flag] of Object.entries(table)) values[name] ??= fromEnvironment(flag)
  refuseUseless(table, values, fromLine)
  return { flags: values, words } as unknown as ParsedArgs<F>
}

/** Nobody should believe that a flag has an effect that it cannot have beside the others. */
function refuseUseless(table: Flags, values: Readonly<Record<string, unknown>>, fromLine: ReadonlySet<string>): void {
  const isGiven = (name: string) => isValue(values[name])
  for (const [name, { needs, replacedBy, env }] of Object.entries(table)) {
    if (!isGiven(name)) continue
    const shown = fromLine.has(name) || env === undefined ? `--${name}` : env
    if (needs !== undefined && !isGiven(needs))
      throw new PenstockError('PEN_USAGE', `${shown} needs --${needs}; without it, it has no effect.`)
    if (replacedBy !== undefined && isGiven(replacedBy))
      throw new PenstockError('PEN_USAGE', `${shown} has no effect with --${replacedBy}. Leave one of them out.`)
  }
}

/** Whether a flag was given: an empty text is none, so that a template may leave a variable empty. */
function isValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return value !== undefined && value !== false && value !== ''
}

function fromEnvironment(flag: Flag): unknown {
  const text = flag.env === undefined ? undefined : process.env[flag.env]
  const given = text !== undefined && text !== ''
  switch (flag.type) {
    case 'boolean':
      return given && !['0', 'false', 'no'].includes(text.toLowerCase())
    case 'count':
      return 0
    case 'list':
      return given ? text.split(',').map((part) => part.trim()) : []
    default:
      return given ? flagValue(flag, flag.env as string, text) : undefined
  }
}

function flagValue(flag: Flag, shown: string, text: string): string | number {
  if (flag.oneOf !== undefined && !flag.oneOf.includes(text)) {
    throw new PenstockError('PEN_USAGE', `${shown} is "${text}"; it must be one of ${flag.oneOf.join(', ')}.`)
  }
  if (flag.type !== 'number') return text
  const number = Number(text)
  const isOne = flag.whole === true ? Number.isSafeInteger(number) : Number.isFinite(number)
  if (text.trim() === '' || !isOne || number < (flag.minimum ?? 0)) {
    const expected = `a ${flag.whole === true ? 'whole ' : ''}number from ${flag.minimum ?? 0}`
    throw new PenstockError('PEN_USAGE', `${shown} is "${text}"; it must be ${expected}.`)
  }
  return number
}

function unknownFlag(shown: string, known: readonly string[]): PenstockError {
  const near = closest(shown, known)
  const hint = near === undefined ? 'See --help.' : `Did you mean ${near}?`
  return new PenstockError('PEN_USAGE', `There is no flag ${shown}. ${hint}`)
}

/** The lines of a help text that describe the flags. */
export function flagHelp(table: Flags): string {
  const rows = Object.entries(table).map(([name, flag]) => {
    const short = flag.short === undefined ? '    ' : `-${flag.short}, `
    const value = flag.type === 'boolean' || flag.type === 'count' ? '' : ` ${flag.value ?? 'VALUE'}`
    const env = flag.env === undefined ? '' : ` [${flag.env}]`
    return [`  ${short}--${name}${value}`, `${flag.help}${env}`] as const
  })
  const width = Math.max(...rows.map(([left]) => left.length)) + 2
  return rows.map(([left, right]) => `${left.padEnd(width)}${right}`).join('\n')
}
