// `penstock top [PIPELINE]`: what Pipelines do now, from the counters of their agents. On a terminal it is redrawn in place and
// takes keys; else each look is printed below the one before.

import { emitKeypressEvents, type Key } from 'node:readline'
import { errorText, PenstockError } from '@penstock/agent/errors'
import { type Flags, isRedrawn, type Sheet, sheetOf, takesColors } from '@penstock/agent/program'
import type { Pipeline } from '../api/pipeline.ts'
import type { TopLine, TopRow } from '../serving/observe/top-look.ts'
import { durationMs, helpOf, parseFlags } from './arguments.ts'
import { type ClusterAccess, type ClusterFlags, connect, namespaceOption, typeOf } from './cluster.ts'
import { OperatorClient, type OperatorLine, operatorFlagHelp, operatorOptions, stopped } from './operator-client.ts'
import { statusText } from './status.ts'
import { TopScreen, table } from './top-screen.ts'

const own = {
  ...namespaceOption('of the Pipelines'),
  'all-namespaces': { type: 'boolean', short: 'A', help: 'those of all namespaces' },
  cluster: { type: 'boolean', help: 'ClusterPipelines' },
  once: { type: 'boolean', help: 'one look, and the end' },
  interval: { type: 'string', value: 'TIME', help: 'time between two looks, 1s to 1m (2s)' },
  output: {
    type: 'string',
    short: 'o',
    default: 'table',
    oneOf: ['table', 'json'],
    value: 'FORMAT',
    help: 'table, json: a line for each look (table)',
  },
} as const satisfies Flags

export const options = { ...own, ...operatorOptions } as const satisfies Flags

export const usage = `Usage: penstock top [PIPELINE] [FLAGS]

Shows what Pipelines do now: events a second in, out, dropped and with errors, how far reading is behind, what is buffered, and how
many of their agents have answered. On a terminal, keys choose (up, down), show components and errors of the chosen one (Enter; Escape
goes back), sort (left, right, r), filter (/), pause (p) and quit (q). It needs the verb \`get\` on \`pipelines\` (\`clusterpipelines\`).

${helpOf(own)}

${operatorFlagHelp}
`

/** Of the looks before the first with all agents: one that is silent must not hold up \`--once\`. */
const patienceMs = 8000

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const [name, ...more] = words
  const all = values['all-namespaces']
  if (more.length > 0 || (all && (name !== undefined || values.namespace !== undefined)) || (all && values.cluster)) {
    throw new PenstockError(
      'PEN_USAGE',
      'Name one Pipeline or none: penstock top [PIPELINE] [-n NAMESPACE | --cluster], or penstock top -A.',
    )
  }
  const { output } = values
  const query = new URLSearchParams({ kind: values.cluster ? 'ClusterPipeline' : 'Pipeline', for: '3600000' })
  if (name !== undefined) query.set('name', name)
  const intervalMs = values.interval === undefined ? (values.once ? 1000 : 2000) : durationMs(values.interval)
  query.set('interval', String(intervalMs))
  using client = await OperatorClient.open(values, `get ${values.cluster ? 'clusterpipelines' : 'pipelines'}`)
  if (!values.cluster && !all) query.set('namespace', client.namespace)
  const isLive = isRedrawn(process.stdout) && !values.once && output === 'table'
  using screen = isLive ? new LiveScreen(statusReader(values)) : undefined
  const signal = screen === undefined ? stopped() : AbortSignal.any([stopped(), screen.quit])
  const until = performance.now() + patienceMs
  try {
    for await (const [said] of client.lines(`/v1/top?${query}`, signal)) {
      if (!isFigures(said)) {
        if (said.kind === 'notification') console.error(said.message)
        continue
      }
      // The first look has nothing to be compared with.
      if (!said.complete && performance.now() < until) continue
      if (screen !== undefined) screen.look(said)
      else process.stdout.write(`${output === 'json' ? JSON.stringify(said) : table(said.pipelines)}\n`)
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

/** What is known of the Pipeline of a row. */
type ReadStatus = (row: TopRow, sheet: Sheet) => Promise<string>

/** Reads the status of Pipelines from the cluster, or says why it cannot. */
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
      return `Its status cannot be read: ${errorText(error)}`
    }
  }
}

/** Bytes, because the process prints no text with codes of a terminal other than colours. */
const takeScreen = Buffer.from('\u001b[?1049h\u001b[?25l')
const giveBack = Buffer.from('\u001b[?25h\u001b[?1049l')

/** The terminal while `top` has it: the alternate screen, without a cursor, with each key as it is pressed. */
class LiveScreen implements Disposable {
  readonly #screen = new TopScreen()
  readonly #quit = new AbortController()
  readonly #status: ReadStatus
  #isReading = false
  readonly #draw = () => {
    // A terminal that does not know its size gives 0.
    const width = process.stdout.columns || 80
    const height = process.stdout.rows || 24
    const text = this.#screen.text({ width, height, isColored: takesColors(process.stdout) })
    process.stdout.write(`\u001b[H\u001b[2J${text}\n`)
  }
  readonly #press = (text: string | undefined, key: Key) => {
    if (this.#screen.press(text, key)) this.#quit.abort()
    else {
      this.#draw()
      this.#read()
    }
  }

  #isTaken = false

  constructor(status: ReadStatus) {
    this.#status = status
  }

  /** Reads the status of the row that is shown whole, again with each look. */
  #read(): void {
    const row = this.#screen.opened
    if (row === undefined || this.#isReading) return
    this.#isReading = true
    void this.#status(row, sheetOf(process.stdout)).then((text) => {
      this.#isReading = false
      if (this.#quit.signal.aborted) return
      this.#screen.describe(row, text)
      this.#draw()
    })
  }

  /** Takes the terminal for the first figures: errors of the connection before them stay in sight. */
  #take(): void {
    this.#isTaken = true
    process.stdout.write(takeScreen)
    process.stdout.on('resize', this.#draw)
    if (!process.stdin.isTTY) return
    emitKeypressEvents(process.stdin)
    process.stdin.setRawMode(true).on('keypress', this.#press).resume()
  }

  /** Aborted when the person quits by a key. */
  get quit(): AbortSignal {
    return this.#quit.signal
  }

  look({ pipelines }: TopLine): void {
    this.#screen.look(pipelines)
    if (!this.#isTaken) this.#take()
    this.#draw()
    this.#read()
  }

  [Symbol.dispose](): void {
    if (!this.#isTaken) return
    process.stdout.off('resize', this.#draw)
    if (process.stdin.isTTY) process.stdin.off('keypress', this.#press).setRawMode(false).pause()
    process.stdout.write(giveBack)
  }
}
