// `list [NAME]…`: the types of components, by kind. Each NAME is a kind, or a part of a type or of a product's name.

import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { plainName } from '../config/elsewhere.ts'
import { PenstockError } from '../errors.ts'
import { components } from '../registry.ts'
import { columnsOf, wrapped } from '../terminal.ts'
import { type Field, outputFormats, rowFormats, rowsText } from './rows.ts'

export const flags = {
  output: {
    type: 'string',
    short: 'o',
    oneOf: outputFormats,
    replacedBy: 'format',
    help: 'Format of the output (text); table, json and yaml have one row per type.',
  },
  format: {
    type: 'string',
    oneOf: ['text', 'json'],
    help: 'Format of the output (text); json lists the types of each kind.',
  },
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

const kinds = ['source', 'transform', 'sink'] as const
type Declaration = (typeof components)[number]

/** The names of kinds, for completion. */
export const kindWords = kinds.map((kind) => `${kind}s`)

const fields: readonly Field<Declaration>[] = [
  { name: 'kind', column: 'KIND', value: ({ kind }) => kind },
  { name: 'type', column: 'TYPE', value: ({ type }) => type },
  { name: 'products', column: 'PRODUCTS', value: ({ products = [] }) => products },
  { name: 'summary', column: 'SUMMARY', value: ({ summary }) => summary },
]

/** @param explainer the command that describes a name */
export async function run(argv: readonly string[], explainer = 'penstock-agent explain'): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(
      helpText(
        `Usage: penstock-agent list [NAME]… [FLAGS]\n\nPrints the sources, transforms and sinks, and the products that they work with. NAME is a kind (sinks), or a part of a type or of a product's name (loki): only those are printed. \`penstock-agent explain TYPE\` describes one.\n\n${flagHelp(flags)}\n`,
      ),
    )
    return exitCodes.ok
  }
  const selected = selection(words, explainer)
  const listed = kinds.map((kind) => {
    const own = selected.filter((component) => component.kind === kind)
    return [`${kind}s`, own.toSorted((left, right) => (left.type < right.type ? -1 : 1))] as const
  })
  if (given.format === 'json') {
    const types = listed.map(([kind, own]) => [kind, own.map((component) => component.type)])
    process.stdout.write(`${JSON.stringify(Object.fromEntries(types))}\n`)
    return exitCodes.ok
  }
  const output = rowFormats.find((each) => each === given.output)
  if (output !== undefined) {
    const rows = listed.flatMap(([, own]) => own)
    process.stdout.write(rowsText(fields, rows, output))
    return exitCodes.ok
  }
  const shown = ({ type, products = [] }: Declaration) =>
    products.length === 0 ? type : `${type} (${products.join(', ')})`
  const width = Math.max(0, ...selected.map((component) => shown(component).length))
  const filled = listed.filter(([, own]) => own.length > 0)
  const columns = columnsOf(process.stdout)
  const parts = filled.map(([kind, own]) => {
    const lines = own.map((component) => row(shown(component), component.summary, width, columns))
    return [`${kind[0]?.toUpperCase()}${kind.slice(1)}:`, ...lines].join('\n')
  })
  process.stdout.write(`${parts.join('\n\n')}\n`)
  return exitCodes.ok
}

/** A row of two columns; on a terminal that is too narrow for both, the summary stands below the name. */
function row(name: string, summary: string, width: number, columns: number | undefined): string {
  const indent = width + 4
  if (columns === undefined || indent <= columns / 2)
    return wrapped(`  ${name.padEnd(width)}  ${summary}`, columns, indent)
  return `  ${name}\n${wrapped(`      ${summary}`, columns, 6)}`
}

/** The components of the named kinds, and among these the ones whose type, alias or product contains one of the other words. */
function selection(words: readonly string[], explainer: string): readonly Declaration[] {
  const lower = words.map((word) => word.toLowerCase())
  const named = kinds.filter((kind) => lower.includes(kind) || lower.includes(`${kind}s`))
  const ofKinds = components.filter(({ kind }) => named.length === 0 || named.includes(kind))
  const parts = words.filter((_, at) => !named.some((kind) => lower[at] === kind || lower[at] === `${kind}s`))
  const isNamed = ({ type, aliases = [], products = [] }: Declaration, part: string) =>
    [type, ...aliases, ...products].some((name) => plainName(name).includes(plainName(part)))
  const missing = parts.find((part) => !ofKinds.some((component) => isNamed(component, part)))
  if (missing !== undefined) {
    const kind = named.length === 1 ? named[0] : 'component'
    const help = `\`${explainer} ${missing}\` names a replacement if another agent has one.`
    throw new PenstockError('PEN_USAGE', `No ${kind} has "${missing}" in its type or products. ${help}`)
  }
  return ofKinds.filter((component) => parts.length === 0 || parts.some((part) => isNamed(component, part)))
}
