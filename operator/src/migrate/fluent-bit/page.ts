// The table of the guide: what each plugin and option of Fluent Bit becomes. It is made of the mappings, so it lists what they do.

import { filters, refusedFilters } from './filters.ts'
import { inputs, refusedInputs } from './inputs.ts'
import { outputs, refusedOutputs } from './outputs.ts'
import { common, matched, type Plugin, type Refusal } from './plugin.ts'

function tables(title: string, plugins: readonly Plugin<unknown>[], refusals: readonly Refusal[]): string[] {
  return [
    `## ${title}`,
    '',
    '| Plugin | Becomes |',
    '|---|---|',
    ...plugins.map(({ name, becomes }) => `| \`${name}\` | ${becomes} |`),
    '',
    ...plugins.flatMap(options),
    '| Without a counterpart | Reason | Nearest equivalent |',
    '|---|---|---|',
    ...refusals.map(({ name, reason, nearest }) => `| \`${name}\` | ${reason} | ${nearest} |`),
    '',
  ]
}

function options({ name, options: all, itself = {} }: Plugin<unknown>): string[] {
  const own = Object.entries(all).filter(
    ([option]) => !Object.hasOwn(common, option) && !Object.hasOwn(matched, option),
  )
  const without = Object.entries(itself).map(([option, how]) => [
    option,
    typeof how === 'string' ? `needs no option: ${how}` : `needs no option: ${how.how}; a gap where that differs`,
  ])
  const rows = [...own, ...without].map(([option, becomes]) => `| \`${option}\` | ${becomes} |`)
  if (rows.length === 0) return []
  return [`### Options of ${name}`, '', '| Option | Becomes |', '|---|---|', ...rows, '']
}

export function fluentBitTables(): string {
  return [
    ...tables('Inputs', inputs, refusedInputs),
    ...tables('Filters', filters, refusedFilters),
    ...tables('Outputs', outputs, refusedOutputs),
  ].join('\n')
}
