// `penstock status [PIPELINE]`: Pipelines as trees: what holds of each, its components, and the agents that run it.

import { PenstockError } from '@penstock/agent/errors'
import { type Field, outputFormats, rowsText, rowText, type Style, styled } from '@penstock/agent/output'
import { type Flags, type Sheet, sheetOf, wrapped } from '@penstock/agent/program'
import { conditionOf } from '../api/conditions.ts'
import { objectKey } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { helpOf, parseFlags } from './arguments.ts'
import { connect, connectionOptions, namespaceOption, typeOf } from './cluster.ts'
import { sizeText } from './size-text.ts'

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
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock status [PIPELINE] [FLAGS]

Shows Pipelines as trees: what holds of each, its components, the agents that run it, its traffic. Exit 1 when one is not ready.

${helpOf(options)}
`

const readyOf = ({ status }: Pipeline) => conditionOf(status?.conditions, 'Ready')

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
  const [name, ...more] = words
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
  if (pipelines.length === 0) {
    if (name === undefined && output !== 'text') process.stdout.write(rowsText(fields, [], output))
    console.error(name === undefined ? `There is no ${types[0]}${where}.` : `There is no ${types[0]} ${name}${where}.`)
    return name === undefined ? 0 : 1
  }
  const [only] = pipelines
  if (output === 'text')
    console.log(pipelines.map((pipeline) => statusText(pipeline, sheetOf(process.stdout))).join('\n'))
  else if (name === undefined || only === undefined) process.stdout.write(rowsText(fields, pipelines, output))
  else process.stdout.write(rowText(fields, only, output))
  return pipelines.every((pipeline) => readyOf(pipeline)?.status === 'True') ? 0 : 1
}

const stateStyles: Readonly<Record<string, Style>> = { True: 'green', False: 'red' }

/** A Pipeline with everything in its status. */
export function statusText(pipeline: Pipeline, { color, columns }: Sheet): string {
  const { metadata, spec, status } = pipeline
  const lines: string[] = []
  const add = (line: string, hang = 12) => lines.push(wrapped(line, columns, hang))
  add(`${pipeline.kind} ${objectKey(metadata.namespace, metadata.name)}${spec.suspend === true ? ' (suspended)' : ''}`)
  if (status === undefined || status.observedGeneration !== metadata.generation) {
    add(
      `  The operator has not looked at generation ${metadata.generation} yet${status?.observedGeneration === undefined ? '; is it running?' : ''}`,
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
  const inputsOf = (entry: { readonly inputs?: readonly string[] | undefined }) =>
    entry.inputs === undefined ? '' : ` <- ${entry.inputs.join(', ')}`
  const entries = [
    ...spec.sources.map((entry) => ({ what: 'source', entry, inputs: '' })),
    ...(spec.transforms ?? []).map((entry) => ({ what: 'transform', entry, inputs: inputsOf(entry) })),
    ...spec.sinks.map((entry) => ({ what: 'sink', entry, inputs: inputsOf(entry) })),
  ]
  for (const { what, entry, inputs } of entries) {
    const ref = 'ref' in entry ? entry.ref : undefined
    const kind = ref === undefined ? `${entry.type}` : `${ref.kind} ${ref.name}`
    add(`  ${what.padEnd(9)} ${entry.name} (${kind})${inputs}`)
    const component = components.get(entry.name)
    if (component === undefined) continue
    const { errors, lastError } = component
    const last =
      lastError === undefined
        ? ''
        : `; the last: ${lastError.reason}: ${lastError.message} (${[lastError.node, lastError.at].filter(Boolean).join(', ')})`
    add(
      `            ${styled(`${errors ?? 0} errors`, errors === undefined || errors === 0 ? 'dim' : 'red', color)}${last}`,
      14,
    )
  }
  for (const agent of status?.agents ?? []) {
    const { name, revision = 'none', desired = 0, current = 0, earlier = 0, failed = 0, stale = 0 } = agent
    const trouble = [
      earlier > 0 ? `${earlier} run an earlier one` : '',
      failed > 0 ? `${failed} failed` : '',
      stale > 0 ? `${stale} silent` : '',
    ].filter(Boolean)
    add(
      `  agent     ${name}: ${current}/${desired} run revision ${revision}${trouble.length === 0 ? '' : `, ${trouble.join(', ')}`}`,
    )
    for (const { node, reason, message } of agent.failures ?? []) add(`            ${node}: ${reason}: ${message}`)
  }
  const flow = status?.flow
  if (flow !== undefined) {
    const { window, eventsIn = 0, eventsOut = 0, dropped = 0, errors = 0, lagSeconds, buffered } = flow
    const parts = [`in ${eventsIn}`, `out ${eventsOut}`, `dropped ${dropped}`, `errors ${errors}`]
    if (lagSeconds !== undefined) parts.push(`${lagSeconds} s behind`)
    if (buffered !== undefined) parts.push(`${typeof buffered === 'number' ? sizeText(buffered) : buffered} buffered`)
    add(`  flow      ${parts.join(', ')}${window === undefined ? '' : ` in ${window}`}`)
  }
  const tests = status?.tests
  if (tests !== undefined) add(`  tests     ${tests.passed ?? 0} passed, ${tests.failed ?? 0} failed`)
  return lines.join('\n')
}
