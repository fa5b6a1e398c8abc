// Where a sub-command finds its resources: `-f PATH`, as with kubectl, or plain words; folders with all below them by `-R`.

import { PenstockError } from '@penstock/agent/errors'

export const fileOption = { type: 'string', short: 'f', multiple: true } as const

/** Options of a command that reads resources. */
export const resourceOptions = { file: fileOption, recursive: { type: 'boolean', short: 'R', default: false } } as const

export const resourceFlagHelp = `  -f, --file PATH            a file, a folder with .yaml files, or - for standard input, such as \`helm template\`; may be repeated, and
                             \`-f\` left out
  -R, --recursive            read the folders below a folder, too`

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
