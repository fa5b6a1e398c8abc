// `penstock top [PIPELINE]`: shows current figures of Pipelines, from the counters of their agents. On a terminal the table is
// redrawn in place and reacts to keys; elsewhere, each refresh is printed after the previous one.

import { errorText, PenstockError } from '@penstock/agent/errors'
import { LiveScreen } from '@penstock/agent/output'
import { type Flags, isRedrawn, type Sheet, sheetOf } from '@penstock/agent/program'
import type { Pipeline } from '../api/pipeline.ts'
import type { TopLine, TopRow } from '../serving/observe/top-look.ts'
import { durationMs, helpOf, objectName, parseFlags } from './arguments.ts'
import { type ClusterAccess, type ClusterFlags, connect, namespaceOption, typeOf } from './cluster.ts'
import { OperatorConnection, type OperatorLine, operatorFlagHelp, operatorOptions, stopped } from './operator-client.ts'
import { statusText } from './status.ts'
import { TopScreen, table } from './top-screen.ts'

const own = {
  ...namespaceOption('of the Pipelines'),
  'all-namespaces': { type: 'boolean', short: 'A', help: 'Pipelines of all namespaces.' },
  cluster: { type: 'boolean', help: 'ClusterPipelines only.' },
  once: { type: 'boolean', help: 'Print one table and end.' },
  interval: { type: 'string', value: 'TIME', help: 'How often to refresh, from 1s to 1m (2s).' },
  output: {
    type: 'string',
    short: 'o',
    default: 'table',
    oneOf: ['table', 'json'],
    value: 'FORMAT',
    help: 'Format: table, or json with one line per refresh (table).',
  },
} as const satisfies Flags

export const options = { ...own, ...operatorOptions } as const satisfies Flags

export const usage = `Usage: penstock top [PIPELINE] [FLAGS]

Shows live figures of Pipelines: events per second in, out, dropped and with errors, the lag of reading, the size of buffers, and how many agents have answered, of those that run some version of the Pipeline and report. On a terminal, keys choose a Pipeline (up, down), show its components and errors (Enter; Escape goes back), sort (left, right, r), filter (/), pause (p) and quit (q). It needs the verb \`get\` on \`pipelines\` (\`clusterpipelines\`).

${helpOf(own)}

${operatorFlagHelp}
`

/** Maximum number of refreshes without all agents, so that a silent agent does not block `--once`. */
const patienceMs = 8000

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const [word, ...more] = words
  const all = values['all-namespaces']
  if (more.length > 0 || (all && (word !== undefined || values.namespace !== undefined)) || (all && values.cluster)) {
    throw new PenstockError(
      'PEN_USAGE',
      'Name one Pipeline or none: penstock top [PIPELINE] [-n NAMESPACE | --cluster], or penstock top -A.',
    )
  }
  const { output } = values
  const kind = values.cluster ? 'ClusterPipeline' : 'Pipeline'
  const query = new URLSearchParams({ kind, for: '3600000' })
  if (word !== undefined) query.set('name', objectName(word, kind))
  const intervalMs = values.interval === undefined ? (values.once ? 1000 : 2000) : durationMs(values.interval)
  query.set('interval', String(intervalMs))
  using client = await OperatorConnection.open(values, `get ${values.cluster ? 'clusterpipelines' : 'pipelines'}`)
  if (!values.cluster && !all) query.set('namespace', client.namespace)
  const isLive = isRedrawn(process.stdout) && !values.once && output === 'table'
  using screen = isLive ? new LiveTable(statusReader(values)) : undefined
  const signal = screen === undefined ? stopped() : AbortSignal.any([stopped(), screen.quit])
  const until = performance.now() + patienceMs
  try {
    for await (const [received] of client.lines(`/v1/top?${query}`, signal)) {
      if (!isFigures(received)) {
        if (received.kind === 'notification') console.error(received.message)
        continue
      }
      // The first snapshot has no earlier one to compare with.
      if (!received.complete && performance.now() < until) continue
      if (screen !== undefined) screen.look(received)
      else process.stdout.write(`${output === 'json' ? JSON.stringify(received) : table(received.pipelines)}\n`)
      if (values.once) return 0
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return 0
}

function isFigures(received: OperatorLine): received is TopLine {
  return received.kind === 'figures'
}

/** The status text of a row's Pipeline. */
type ReadStatus = (row: TopRow, sheet: Sheet) => Promise<string>

/** Reads the status of Pipelines from the cluster, or explains why it cannot. */
function statusReader(flags: ClusterFlags): ReadStatus {
  let access: Promise<ClusterAccess> | undefined
  return async ({ kind, namespace, name }, sheet) => {
    try {
      access ??= connect(flags)
      const { client } = await access
      const pipeline = await client.get<Pipeline>(typeOf(kind), namespace, name)
      return pipeline === undefined ? 'It has been deleted.' : statusText(pipeline, sheet)
    } catch (error) {
      access = undefined
      return `cannot read its status: ${errorText(error)}`
    }
  }
}

/** The terminal of `top`. Reloads the status of the opened row at each key and each refresh. */
class LiveTable implements Disposable {
  readonly #drawing = new TopScreen()
  readonly #screen = new LiveScreen({
    text: (size) => this.#drawing.text(size),
    press: (text, key) => {
      const quits = this.#drawing.press(text, key)
      this.#read()
      return quits
    },
  })
  readonly #status: ReadStatus
  #isReading = false

  constructor(status: ReadStatus) {
    this.#status = status
  }

  #read(): void {
    const row = this.#drawing.opened
    if (row === undefined || this.#isReading) return
    this.#isReading = true
    void this.#status(row, sheetOf(process.stdout)).then((text) => {
      this.#isReading = false
      if (this.quit.aborted) return
      this.#drawing.describe(row, text)
      this.#screen.draw()
    })
  }

  /** Aborted when the user quits with a key. */
  get quit(): AbortSignal {
    return this.#screen.quit
  }

  look({ pipelines }: TopLine): void {
    this.#drawing.look(pipelines)
    this.#screen.draw()
    this.#read()
  }

  [Symbol.dispose](): void {
    this.#screen[Symbol.dispose]()
  }
}
