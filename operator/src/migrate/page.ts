// Tables of the guide with the counterparts of plugins and options. They are generated from the mappings, so they match the conversion.

import { byCloseness } from '@penstock/agent/errors'

/** The effect of an option without a counterpart, and the options that are converted, the most similar ones first. */
export function withoutOption(name: string, converted: readonly string[]): string {
  const others = byCloseness(name, converted).slice(0, 8).join(', ')
  const known = others === '' ? '' : ` Options that are converted: ${others}.`
  return `The Pipeline behaves as if the option were not set.${known}`
}

/** An option whose work the agent does in its own way, except for some values. */
export interface Exception {
  readonly how: string
  /** Values for which a gap is reported. */
  readonly unless: RegExp
  readonly reason: string
  readonly nearest: string
  /** Whether Penstock has no such part, so that no conversion can close the gap. */
  readonly isAbsent?: true
}

/** The parts of a mapping that the guide shows. */
export interface Described {
  readonly name: string
  readonly becomes: string
  /** Options with their counterparts. */
  readonly options: Readonly<Record<string, string>>
  /** Options whose work the agent does in its own way, with an explanation. */
  readonly itself?: Readonly<Record<string, string | Exception>>
}

/** A plugin without a counterpart. */
export interface Refusal {
  readonly name: string
  readonly reason: string
  readonly nearest: string
  /** Whether a Pipeline can do the same, although no mapping generates it. */
  readonly isHere?: boolean
}

export const none = (name: string, reason: string, nearest: string): Refusal => ({ name, reason, nearest })

/** @param left names of options that all plugins have, which are not shown */
export function mappingTables(
  title: string,
  mappings: readonly Described[],
  refusals: readonly Refusal[],
  left: readonly string[] = [],
): string {
  const lines = [
    `## ${title}`,
    '',
    '| Plugin | Becomes |',
    '|---|---|',
    ...mappings.map(({ name, becomes }) => `| \`${name}\` | ${becomes} |`),
    '',
    ...mappings.flatMap((mapping) => options(mapping, left)),
  ]
  if (refusals.length > 0) lines.push(...refusalRows(refusals))
  return lines.join('\n')
}

/** A table of parts without a counterpart. */
export const refusalTable = (title: string, refusals: readonly Refusal[]): string =>
  [`## ${title}`, '', ...refusalRows(refusals)].join('\n')

const refusalRows = (refusals: readonly Refusal[]): readonly string[] => [
  '| Without a counterpart | Reason | Nearest equivalent |',
  '|---|---|---|',
  ...refusals.map(({ name, reason, nearest }) => `| \`${name}\` | ${reason} | ${nearest} |`),
  '',
]

function options({ name, options: all, itself = {} }: Described, left: readonly string[]): string[] {
  const own = Object.entries(all).filter(([option]) => !left.includes(option))
  const without = Object.entries(itself).map(([option, how]) => [
    option,
    typeof how === 'string' ? `needs no option: ${how}` : `needs no option: ${how.how}; a gap for other values`,
  ])
  const rows = [...own, ...without].map(([option, becomes]) => `| \`${option}\` | ${becomes} |`)
  if (rows.length === 0) return []
  return [`### Options of \`${name}\``, '', '| Option | Becomes |', '|---|---|', ...rows, '']
}
