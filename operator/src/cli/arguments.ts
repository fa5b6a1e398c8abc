// Where a sub-command finds its resources: `-f PATH`, as with kubectl, or plain words; folders with all below them by `-R`.

import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { closest, PenstockError } from '@penstock/agent/errors'

/** The flags of a command by name: what it parses, and what completion offers. */
export type CommandOptions = ParseArgsOptionsConfig

type Parsed<O extends CommandOptions> = ReturnType<
  typeof parseArgs<{ args: string[]; options: O; allowPositionals: true }>
>

/**
 * Reads the words of a command.
 * @param words whether words that are no flags are taken, too
 */
export function parseFlags<const O extends CommandOptions>(argv: string[], options: O, words?: 'words'): Parsed<O> {
  const { tokens } = parseArgs({ args: argv, options, strict: false, allowPositionals: true, tokens: true })
  const stray = tokens.find((token) => token.kind === 'option' && !Object.hasOwn(options, token.name))
  if (stray?.kind === 'option') throw unknownFlag(stray.rawName, Object.keys(options))
  const word = tokens.find((token) => token.kind === 'positional')
  if (words === undefined && word?.kind === 'positional') {
    throw new PenstockError('PEN_USAGE', `\`${word.value}\` is one word too many.`)
  }
  return parseArgs({ args: argv, options, allowPositionals: true })
}

function unknownFlag(raw: string, names: readonly string[]): PenstockError {
  const near = closest(
    raw,
    names.map((name) => `--${name}`),
  )
  const meant = near === undefined ? '' : ` Did you mean \`${near}\`?`
  return new PenstockError('PEN_USAGE', `There is no flag '${raw}'.${meant}`)
}

export const fileOption = { type: 'string', short: 'f', multiple: true } as const

/** Options of a command that reads resources. */
export const resourceOptions = { file: fileOption, recursive: { type: 'boolean', short: 'R', default: false } } as const

export const resourceFlagHelp = `  -f, --file PATH            a file, a folder with .yaml files, or - for standard input, such as \`helm template\`; may be repeated, and
                             \`-f\` left out
  -R, --recursive            read the folders below a folder, too`

/** The option of a command that shows what resources become on a cluster. */
export const clusterNameOption = { 'cluster-name': { type: 'string' } } as const

export const clusterNameHelp = `  --cluster-name NAME        what \`fieldRef: clusterName\` means (cluster)`

export function resourcePaths(
  files: readonly string[] | undefined,
  words: readonly string[] = [],
): readonly [string, ...string[]] {
  const [first, ...more] = [...(files ?? []), ...words]
  if (first !== undefined) return [first, ...more]
  throw new PenstockError('PEN_USAGE', 'Name the resources with `-f PATH`: a file or a folder with .yaml files.')
}

/** Milliseconds of `10s`, `500ms`, `2m` or plain seconds. */
export function durationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text)
  if (match === null) {
    throw new PenstockError('PEN_USAGE', `A time is written like \`10s\` or \`2m\`; found \`${text}\`.`)
  }
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[(match[2] ?? 's') as 'ms' | 's' | 'm' | 'h']
  return Number(match[1]) * unit
}

export function oneOf<const V extends string>(flag: string, value: string, allowed: readonly V[]): V {
  const found = allowed.find((each) => each === value)
  if (found !== undefined) return found
  throw new PenstockError('PEN_USAGE', `\`--${flag}\` takes one of ${allowed.join(', ')}; found \`${value}\`.`)
}

export function wholeNumber(flag: string, value: string, least: number, most: number): number {
  const number = Number(value)
  if (Number.isInteger(number) && number >= least && number <= most) return number
  throw new PenstockError(
    'PEN_USAGE',
    `\`--${flag}\` takes a whole number from ${least} to ${most}; found \`${value}\`.`,
  )
}
