// `penstock list [NAME]…`: lists the component types for Pipelines, and the products that they work with.

import { list, outputFormats } from '@penstock/agent/output'
import type { Flags } from '@penstock/agent/program'
import { helpOf, parseFlags } from './arguments.ts'

export const options = {
  output: {
    type: 'string',
    short: 'o',
    default: 'text',
    oneOf: outputFormats,
    value: 'FORMAT',
    help: 'Format: text, by kind; table, json and yaml have one row per type (text).',
  },
} as const satisfies Flags

export const words = ['sources', 'transforms', 'sinks']

export const usage = `Usage: penstock list [NAME]… [FLAGS]

Prints the sources, transforms and sinks of Pipelines, with the products that they work with. NAME is a kind (sinks), or a part of a type or of a product's name (loki): only those are printed. \`penstock explain TYPE\` describes one.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags, words: names } = parseFlags(argv, options, 'words')
  return list(['--output', flags.output, '--', ...names])
}
