// `penstock status [PIPELINE]`: shows Pipelines as trees: their conditions, their components, and the agents that run
// them.

import { PenstockError } from '@penstock/agent/errors'
import { type Field, outputFormats, rowsText, rowText, type Style, styled } from '@penstock/agent/output'
import { counted, type Flags, isRedrawn, pause, type Sheet, sheetOf, wrapped } from '@penstock/agent/program'
import { conditionOf } from '../api/conditions.ts'
import { objectKey } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { helpOf, objectName, parseFlags } from './arguments.ts'
import { connect, connectionOptions, namespaceOption, typeOf } from './cluster.ts'
import { stopped } from './operator-client.ts'
import { sizeText } from './size-text.ts'
import { branchesOf } from './status-tree.ts'

export const options = {
  output: {
    type: 'string',
    short: 'o',
    default: 'text',
    oneOf: outputFormats,
    value: 'FORMAT',
    help: 'Format: text; table, json and yaml have one row per Pipeline (text).',
  },
  ...namespaceOption('of the Pipelines'),
  'all-namespaces': { type: 'boolean', short: 'A', help: 'Pipelines of all namespaces, and ClusterPipelines.' },
  cluster: { type: 'boolean', help: 'ClusterPipelines only.' },
  watch: { type: 'boolean', short: 'w', help: 'Show each change of the state, until Ctrl-C.' },
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock status [PIPELINE] [FLAGS]

Shows the state of Pipelines: their conditions, their components as a tree with errors, the agents that run them, and their traffic. Exit code 1 if one is not ready.

${helpOf(options)}
`

const readyOf = ({ status }: Pipeline) => conditionOf(status?.conditions, 'Ready')

/** Whether it is ready as it is now: just after an apply, the condition is still about the version before. */
const isReady = (pipeline: Pipeline) =>
  readyOf(pipeline)?.status === 'True' && pipeline.status?.observedGeneration === pipeline.metadata.generation

const fields: readonly Field<Pipeline>[] = [
  { name: 'kind', column: 'KIND', value: ({ kind }) => kind },
  { name: 'namespace', column: 'NAMESPACE', value: ({ metadata }) => metadata.namespace },
  { name: 'name', column: 'NAME', value: ({ metadata }) => metadata.name },
  { name: 'ready', column: 'READY', value: (pipeline) => readyOf(pipeline)?.status },
  { name: 'reason', column: 'REASON', value: (pipeline) => readyOf(pipeline)?.reason },
  { name: 'message', value: (pipeline) => readyOf(pipeline)?.message },
  { name: 'suspended', value: ({ spec }) => spec.suspend === true },
  { name: 'generation', value: ({ metadata }) => metadata.generation },
  { name: 'observedGeneration', value: ({ status }) => status?.observedGeneration },
  {
    name: 'agents',
    column: 'AGENTS',
    value: ({ status }) => status?.agents ?? [],
    cell: ({ status }) => {
      const sum = (count: 'current' | 'desired') =>
        (status?.agents ?? []).reduce((total, agent) => total + (agent[count] ?? 0), 0)
      return `${sum('current')}/${sum('desired')}`
    },
  },
  { name: 'eventsIn', column: 'IN', value: ({ status }) => status?.flow?.eventsIn },
  { name: 'eventsOut', column: 'OUT', value: ({ status }) => status?.flow?.eventsOut },
  { name: 'dropped', column: 'DROPPED', value: ({ status }) => status?.flow?.dropped },
  { name: 'errors', column: 'ERRORS', value: ({ status }) => status?.flow?.errors },
  { name: 'lagSeconds', column: 'LAG SECONDS', value: ({ status }) => status?.flow?.lagSeconds },
  { name: 'buffered', value: ({ status }) => status?.flow?.buffered },
  { name: 'window', value: ({ status }) => status?.flow?.window },
  { name: 'conditions', value: ({ status }) => status?.conditions ?? [] },
  { name: 'components', value: ({ status }) => status?.components ?? [] },
  { name: 'tests', value: ({ status }) => status?.tests },
]

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const [word, ...more] = words
  const name = word === undefined ? undefined : objectName(word, values.cluster ? 'ClusterPipeline' : 'Pipeline')
  if (values.watch && values.output !== 'text' && values.output !== 'table')
    throw new PenstockError('PEN_USAGE', '`--watch` shows text or a table.')
  if (more.length > 0) {
    throw new PenstockError(
      'PEN_USAGE',
      'Name one Pipeline or none: penstock status [PIPELINE] [-n NAMESPACE | -A | --cluster].',
    )
  }
  const { output } = values
  const { client, namespace } = await connect(values)
  const types = values.cluster
    ? ['ClusterPipeline']
    : ['Pipeline', ...(values['all-namespaces'] ? ['ClusterPipeline'] : [])]
  const look = async (): Promise<Look> => {
    const pipelines: Pipeline[] = []
    for (const kind of types) {
      const type = typeOf(kind)
      if (name === undefined) pipelines.push(...(await client.list<Pipeline>(type, { namespace })))
      else {
        const found = await client.get<Pipeline>(type, namespace, name)
        if (found !== undefined) pipelines.push(found)
      }
    }
    const where = values.cluster ? '' : namespace === undefined ? ' in any namespace' : ` in namespace ${namespace}`
    const [only] = pipelines
    if (only === undefined) {
      const text = name === undefined && output !== 'text' ? rowsText(fields, [], output) : ''
      const elsewhere =
        name !== undefined || where === '' || namespace === undefined ? '' : ' `penstock status -A` shows those of all.'
      const absent = `There is no ${types[0]}${name === undefined ? '' : ` ${name}`}${where}.${elsewhere}`
      return { text, absent, code: name === undefined ? 0 : 1 }
    }
    const code = pipelines.every(isReady) ? 0 : 1
    if (output === 'text') {
      const sheet = sheetOf(process.stdout)
      return { text: `${pipelines.map((pipeline) => statusText(pipeline, sheet)).join('\n')}\n`, code }
    }
    return { text: name === undefined ? rowsText(fields, pipelines, output) : rowText(fields, only, output), code }
  }
  return values.watch ? await watched(look) : shown(await look())
}

interface Look {
  readonly text: string
  /** The object that does not exist. */
  readonly absent?: string
  readonly code: number
}

function shown({ text, absent, code }: Look): number {
  process.stdout.write(text)
  if (absent !== undefined) console.error(absent)
  return code
}

/** Interval between two refreshes. */
const watchMs = 2000

/** Clears the terminal; written as bytes, because the process prints no terminal codes in text except colours. */
const cleared = Buffer.from('\u001b[H\u001b[2J')

/** Refreshes repeatedly and shows changes, until Ctrl-C. A terminal only shows the latest state. */
async function watched(look: () => Promise<Look>): Promise<number> {
  const signal = stopped()
  const isLive = isRedrawn(process.stdout)
  let before: string | undefined
  let code = 1
  while (!signal.aborted) {
    const next = await look()
    const whole = `${next.absent ?? ''}${next.text}`
    if (whole !== before) {
      if (isLive) process.stdout.write(cleared)
      else if (before !== undefined) process.stdout.write('\n')
      code = shown(next)
      if (isLive) console.error('Ctrl-C exits.')
      before = whole
    }
    await pause(watchMs, signal)
  }
  return code
}

/** A count for people: 120,034. */
const figure = (count: number | string) => Number(count).toLocaleString('en-US')

const stateStyles: Readonly<Record<string, Style>> = { True: 'green', False: 'red' }

/** A Pipeline with its whole status. */
export function statusText(pipeline: Pipeline, { color, columns }: Sheet): string {
  const { metadata, spec, status } = pipeline
  const lines: string[] = []
  const add = (line: string, hang = 12) => lines.push(wrapped(line, columns, hang))
  add(`${pipeline.kind} ${objectKey(metadata.namespace, metadata.name)}${spec.suspend === true ? ' (suspended)' : ''}`)
  if (status === undefined || status.observedGeneration !== metadata.generation) {
    add(
      `  The operator has not processed generation ${metadata.generation} yet${status?.observedGeneration === undefined ? '; is it running?' : ''}`,
    )
  }
  const shown = new Set([''])
  for (const { type, status: holds, reason, message } of status?.conditions ?? []) {
    // Summary conditions repeat the conditions that they summarise.
    const state = styled(holds.padEnd(7), stateStyles[holds] ?? 'yellow', color)
    add(`  ${type.padEnd(12)} ${state} ${reason}${shown.has(message) ? '' : `: ${message}`}`, 23)
    shown.add(message)
  }
  const components = new Map((status?.components ?? []).map((component) => [component.name, component]))
  for (const { line, indent, name } of branchesOf(spec)) {
    add(`  ${line}`, indent.length + 6)
    const component = components.get(name)
    if (component === undefined) continue
    const { errors = 0, lastError } = component
    const last =
      lastError === undefined || !isExplaining(Number(errors), lastError.reason, status?.flow?.dropped)
        ? ''
        : `; the last: ${lastError.reason}: ${lastError.message} (${[lastError.node, lastError.at].filter(Boolean).join(', ')})`
    const state = styled(counted(Number(errors), 'error'), Number(errors) === 0 ? 'dim' : 'red', color)
    add(`  ${indent}  ${state}${last}`, indent.length + 6)
  }
  for (const agent of status?.agents ?? []) {
    const { name, revision, desired = 0, current = 0, earlier = 0, failed = 0, stale = 0 } = agent
    const trouble = [
      earlier > 0 ? `${earlier} run an earlier one` : '',
      failed > 0 ? `${failed} failed` : '',
      stale > 0 ? `${stale} silent` : '',
    ].filter(Boolean)
    add(
      `  agent     ${name}: ${revision === undefined ? 'no revision yet' : `${current}/${desired} run revision ${revision}`}${trouble.length === 0 ? '' : `, ${trouble.join(', ')}`}`,
    )
    for (const { node, reason, message } of agent.failures ?? []) add(`            ${node}: ${reason}: ${message}`)
  }
  const flow = status?.flow
  if (flow !== undefined) {
    const { window, eventsIn = 0, eventsOut = 0, dropped = 0, errors = 0, lagSeconds, buffered } = flow
    const parts = [`in ${figure(eventsIn)}`, `out ${figure(eventsOut)}`, `dropped ${figure(dropped)}`]
    parts.push(`errors ${figure(errors)}`)
    // Counts cover the window; these two are current values.
    const now = lagSeconds === undefined ? [] : [`${figure(lagSeconds)} s behind`]
    if (buffered !== undefined) now.push(`${typeof buffered === 'number' ? sizeText(buffered) : buffered} buffered`)
    const counts = `${parts.join(', ')}${window === undefined ? '' : ` in ${window}`}`
    add(`  flow      ${counts}${now.length === 0 ? '' : `; now ${now.join(', ')}`}`)
  }
  const tests = status?.tests
  if (tests !== undefined) add(`  tests     ${tests.passed ?? 0} passed, ${tests.failed ?? 0} failed`)
  return lines.join('\n')
}

/**
 * Whether the last message of a component explains a failure. Without errors it does if its reason is a known one, such as a retried
 * refusal, or if events were dropped; otherwise it is only a note.
 */
function isExplaining(errors: number, reason: string | undefined, dropped: unknown): boolean {
  return errors > 0 || reason !== 'Error' || Number(dropped ?? 0) > 0
}
