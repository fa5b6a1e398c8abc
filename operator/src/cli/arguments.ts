// How the commands of `penstock` parse flags and locate resources: `-f PATH`, as in kubectl, or plain arguments; `-R` includes
// sub-folders.

import { PenstockError } from '@penstock/agent/errors'
import { type Dialect, type Flags, flagHelp, type ParsedArgs, parseFlags as read } from '@penstock/agent/program'

const dialect: Dialect = {
  refusesFlagsAsValues: true,
  unknownFlag: (shown, near) =>
    `There is no flag \`${shown}\`.${near === undefined ? '' : ` Did you mean \`${near}\`?`}`,
  notOneOf: (shown, found, allowed) => `\`${shown}\` takes one of ${allowed.join(', ')}; found \`${found}\`.`,
}

/** Parses the arguments of a command. @param words whether arguments that are not flags are accepted */
export function parseFlags<const F extends Flags>(argv: readonly string[], flags: F, words?: 'words'): ParsedArgs<F> {
  const parsed = read(argv, flags, dialect)
  const [word] = parsed.words
  if (words === undefined && word !== undefined) {
    throw new PenstockError('PEN_USAGE', `Unexpected argument \`${word}\`.`)
  }
  return parsed
}

/** The flags of a command in its help. */
export function helpOf(flags: Flags): string {
  return flagHelp(flags, 29)
}

const shortNames = { Pod: 'po', Pipeline: 'pl', ClusterPipeline: 'cpl' } as const

/**
 * The name in an argument: `NAME`, or `TYPE/NAME` as `kubectl get -o name` prints it.
 * @param kind of the object that the command expects
 */
export function objectName(word: string, kind: keyof typeof shortNames): string {
  const slash = word.indexOf('/')
  if (slash < 0) return word
  const type = word.slice(0, slash).split('.')[0]?.toLowerCase()
  const own = kind.toLowerCase()
  if (type === own || type === `${own}s` || type === shortNames[kind]) return word.slice(slash + 1)
  const cluster = kind === 'Pipeline' ? ', and `--cluster` for a ClusterPipeline' : ''
  throw new PenstockError(
    'PEN_USAGE',
    `Expected the name of a ${kind}, or \`${own}/NAME\`; found \`${word}\`. Use \`-n\` for the namespace${cluster}.`,
  )
}

/** Flags of a command that reads resources. */
export const resourceOptions = {
  file: {
    type: 'string',
    short: 'f',
    multiple: true,
    value: 'PATH',
    help: 'File, folder with .yaml files, or - for standard input, such as the output of `helm template`. May be repeated; -f may be omitted.',
  },
  recursive: { type: 'boolean', short: 'R', help: 'Read sub-folders too.' },
} as const satisfies Flags

/** The flag of a command that shows how resources look in a cluster. */
export const clusterNameOption = {
  'cluster-name': { type: 'string', value: 'NAME', help: 'Value of `fieldRef: clusterName` (cluster).' },
} as const satisfies Flags

export function resourcePaths(
  files: readonly string[] | undefined,
  words: readonly string[] = [],
): readonly [string, ...string[]] {
  const [first, ...more] = [...(files ?? []), ...words]
  if (first !== undefined) return [first, ...more]
  throw new PenstockError('PEN_USAGE', 'Name the resources with `-f PATH`: a file, or a folder with .yaml files.')
}

/** Parses `10s`, `500ms`, `2m` or plain seconds to milliseconds. */
export function durationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text)
  if (match === null) {
    throw new PenstockError('PEN_USAGE', `A duration has the form \`10s\` or \`2m\`; found \`${text}\`.`)
  }
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[(match[2] ?? 's') as 'ms' | 's' | 'm' | 'h']
  return Number(match[1]) * unit
}

export function wholeNumber(flag: string, value: string, min: number, max: number): number {
  const number = Number(value)
  if (Number.isInteger(number) && number >= min && number <= max) return number
  throw new PenstockError('PEN_USAGE', `\`--${flag}\` takes a whole number from ${min} to ${max}; found \`${value}\`.`)
}
