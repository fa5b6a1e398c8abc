// `list`: the types of components, by kind.

import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { PenstockError } from '../errors.ts'
import { components } from '../registry.ts'
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

const fields: readonly Field<(typeof components)[number]>[] = [
  { name: 'kind', column: 'KIND', value: ({ kind }) => kind },
  { name: 'type', column: 'TYPE', value: ({ type }) => type },
  { name: 'products', column: 'PRODUCTS', value: ({ products = [] }) => products },
  { name: 'summary', column: 'SUMMARY', value: ({ summary }) => summary },
]

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(
      helpText(
        `Usage: penstock-agent list [FLAGS]\n\nPrints the sources, transforms and sinks, and the products that they work with. \`penstock-agent explain TYPE\` describes one.\n\n${flagHelp(flags)}\n`,
      ),
    )
    return exitCodes.ok
  }
  if (words.length > 0)
    throw new PenstockError('PEN_USAGE', `"${words[0]}" is not a flag of list, which has no other arguments.`)
  const listed = kinds.map((kind) => {
    const own = components.filter((component) => component.kind === kind)
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
  const shown = ({ type, products = [] }: (typeof components)[number]) =>
    products.length === 0 ? type : `${type} (${products.join(', ')})`
  const width = Math.max(0, ...components.map((component) => shown(component).length))
  const parts = listed.map(([kind, own]) => {
    const lines = own.map((component) => `  ${shown(component).padEnd(width)}  ${component.summary}`)
    return [`${kind[0]?.toUpperCase()}${kind.slice(1)}:`, ...lines].join('\n')
  })
  process.stdout.write(`${parts.join('\n\n')}\n`)
  return exitCodes.ok
}
