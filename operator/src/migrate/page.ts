// Tables of the guide: what each plugin and option of another agent becomes. They are made of the mappings, so they list what these do.

/** An option whose work the agent does in its own way, but for some values. */
export interface Exception {
  readonly how: string
  /** For these values a gap is reported. */
  readonly unless: RegExp
  readonly reason: string
  readonly nearest: string
}

/** A mapping as far as the guide shows it. */
export interface Described {
  readonly name: string
  readonly becomes: string
  /** Options with what becomes of each. */
  readonly options: Readonly<Record<string, string>>
  /** Options whose work the agent does in its own way, and how. */
  readonly itself?: Readonly<Record<string, string | Exception>>
}

/** A plugin without a counterpart. */
export interface Refusal {
  readonly name: string
  readonly reason: string
  readonly nearest: string
  /** Whether a Pipeline can do the same, though no mapping writes it. */
  readonly isHere?: boolean
}

/** @param left names of options that are not shown, as every plugin has them */
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

/** A table of parts that have no counterpart at all. */
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
    typeof how === 'string' ? `needs no option: ${how}` : `needs no option: ${how.how}; a gap where that differs`,
  ])
  const rows = [...own, ...without].map(([option, becomes]) => `| \`${option}\` | ${becomes} |`)
  if (rows.length === 0) return []
  return [`### Options of \`${name}\``, '', '| Option | Becomes |', '|---|---|', ...rows, '']
}
