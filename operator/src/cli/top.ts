// `penstock top [PIPELINE]`: what Pipelines do now, from the counters of their agents. On a terminal it is redrawn in place; else each
// look is printed below the one before.

import { PenstockError } from '@penstock/agent/errors'
import type { TopLine, TopRow } from '../serving/observe/top-look.ts'
import { type CommandOptions, durationMs, oneOf, parseFlags } from './arguments.ts'
import { OperatorClient, type OperatorLine, operatorFlagHelp, operatorOptions, stopped } from './operator-client.ts'

export const usage = `Usage: penstock top [PIPELINE] [FLAGS]

Shows what Pipelines do now: events a second in, out, dropped and with errors, how far reading is behind, what is buffered, and how
many of their agents have answered. It needs the verb \`get\` on \`pipelines\` (\`clusterpipelines\`).

  -n, --namespace NS         of the Pipelines; that of the context
  -A, --all-namespaces       those of all namespaces
  --cluster                  ClusterPipelines
  --once                     one look, and the end
  --interval TIME            time between two looks, 1s to 1m (2s)
  -o, --output FORMAT        table, json: a line for each look (table)

${operatorFlagHelp}`

/** Of the looks before the first with all agents: one that is silent must not hold up \`--once\`. */
const patienceMs = 8000

export const options = {
  ...operatorOptions,
  once: { type: 'boolean', default: false },
  interval: { type: 'string' },
  output: { type: 'string', short: 'o', default: 'table' },
} as const satisfies CommandOptions

export async function run(argv: string[]): Promise<number> {
  const { values, positionals } = parseFlags(argv, options, 'words')
  const [name, ...more] = positionals
  const all = values['all-namespaces']
  if (more.length > 0 || (all && (name !== undefined || values.namespace !== undefined)) || (all && values.cluster)) {
    throw new PenstockError(
      'PEN_USAGE',
      'Name one Pipeline or none: penstock top [PIPELINE] [-n NAMESPACE | --cluster], or penstock top -A.',
    )
  }
  const output = oneOf('output', values.output, ['table', 'json'])
  const query = new URLSearchParams({ kind: values.cluster ? 'ClusterPipeline' : 'Pipeline', for: '3600000' })
  if (name !== undefined) query.set('name', name)
  const intervalMs = values.interval === undefined ? (values.once ? 1000 : 2000) : durationMs(values.interval)
  query.set('interval', String(intervalMs))
  using client = await OperatorClient.open(values, `get ${values.cluster ? 'clusterpipelines' : 'pipelines'}`)
  if (!values.cluster && !all) query.set('namespace', client.namespace)
  const signal = stopped()
  const live = process.stdout.isTTY === true && !values.once
  const until = performance.now() + patienceMs
  try {
    for await (const [said] of client.lines(`/v1/top?${query}`, signal)) {
      if (!isFigures(said)) {
        if (said.kind === 'notification') console.error(said.message)
        continue
      }
      // The first look has nothing to be compared with.
      if (!said.complete && performance.now() < until) continue
      if (output === 'json') process.stdout.write(`${JSON.stringify(said)}\n`)
      else process.stdout.write(live ? `\u001b[H\u001b[2J${table(said.pipelines)}\n` : `${table(said.pipelines)}\n`)
      if (values.once) return 0
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return 0
}

function isFigures(said: OperatorLine): said is TopLine {
  return said.kind === 'figures'
}

const columns = ['PIPELINE', 'AGENTS', 'IN/S', 'OUT/S', 'DROPPED/S', 'ERRORS/S', 'BUFFERED', 'BYTES', 'LAG'] as const

function table(rows: readonly TopRow[]): string {
  if (rows.length === 0) return 'There is no Pipeline that runs.'
  const cells = rows.map((row) => [
    row.namespace === undefined ? row.name : `${row.namespace}/${row.name}`,
    `${row.agents.answered}/${row.agents.asked}`,
    ...[row.inPerSecond, row.outPerSecond, row.droppedPerSecond, row.errorsPerSecond].map(String),
    String(row.bufferedEvents),
    String(row.bufferedBytes),
    row.lagSeconds === undefined ? '-' : `${row.lagSeconds} s`,
  ])
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...cells.map((line) => (line[index] as string).length)),
  )
  return [[...columns], ...cells]
    .map((line) =>
      line
        .map((text, index) => (index === 0 ? text.padEnd(widths[0] as number) : text.padStart(widths[index] as number)))
        .join('  '),
    )
    .join('\n')
}
