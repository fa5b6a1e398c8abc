// `penstock status [PIPELINE]`: Pipelines as trees: what holds of each, its components, and the agents that run it.

import { PenstockError } from '@penstock/agent/errors'
import { conditionOf } from '../api/conditions.ts'
import { objectKey } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { type CommandOptions, parseFlags } from './arguments.ts'
import { clusterOptions, connect, typeOf } from './cluster.ts'

export const usage = `Usage: penstock status [PIPELINE] [FLAGS]

Shows Pipelines as trees: what holds of each, its components, the agents that run it, its traffic. Exit 1 when one is not ready.

  -n, --namespace NS         of the Pipelines; that of the context
  -A, --all-namespaces       those of all namespaces, and ClusterPipelines
  --cluster                  ClusterPipelines
  --kubeconfig FILE, --context NAME   the cluster, as for kubectl
`

export const options = {
  ...clusterOptions,
  cluster: { type: 'boolean', default: false },
} as const satisfies CommandOptions

export async function run(argv: string[]): Promise<number> {
  const { values, positionals } = parseFlags(argv, options, 'words')
  const [name, ...more] = positionals
  if (more.length > 0) {
    throw new PenstockError(
      'PEN_USAGE',
      'Name one Pipeline or none: penstock status [PIPELINE] [-n NAMESPACE | -A | --cluster].',
    )
  }
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
    console.error(name === undefined ? `There is no ${types[0]}${where}.` : `There is no ${types[0]} ${name}${where}.`)
    return name === undefined ? 0 : 1
  }
  console.log(pipelines.map(statusText).join('\n'))
  return pipelines.every((pipeline) => conditionOf(pipeline.status?.conditions, 'Ready')?.status === 'True') ? 0 : 1
}

/** A Pipeline with everything in its status. */
export function statusText(pipeline: Pipeline): string {
  const { metadata, spec, status } = pipeline
  const lines = [
    `${pipeline.kind} ${objectKey(metadata.namespace, metadata.name)}${spec.suspend === true ? ' (suspended)' : ''}`,
  ]
  if (status === undefined || status.observedGeneration !== metadata.generation) {
    lines.push(
      `  The operator has not looked at generation ${metadata.generation} yet${status?.observedGeneration === undefined ? '; is it running?' : ''}`,
    )
  }
  const shown = new Set([''])
  for (const { type, status: holds, reason, message } of status?.conditions ?? []) {
    // Those that sum up repeat what they are about.
    lines.push(`  ${type.padEnd(12)} ${holds.padEnd(7)} ${reason}${shown.has(message) ? '' : `: ${message}`}`)
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
    lines.push(`  ${what.padEnd(9)} ${entry.name} (${kind})${inputs}`)
    const component = components.get(entry.name)
    if (component === undefined) continue
    const { errors, lastError } = component
    const last =
      lastError === undefined
        ? ''
        : `; the last: ${lastError.reason}: ${lastError.message} (${[lastError.node, lastError.at].filter(Boolean).join(', ')})`
    lines.push(`            ${errors ?? 0} errors${last}`)
  }
  for (const agent of status?.agents ?? []) {
    const { name, revision = 'none', desired = 0, current = 0, failed = 0, stale = 0 } = agent
    const trouble = [failed > 0 ? `${failed} failed` : '', stale > 0 ? `${stale} silent` : ''].filter(Boolean)
    lines.push(
      `  agent     ${name}: ${current}/${desired} run revision ${revision}${trouble.length === 0 ? '' : `, ${trouble.join(', ')}`}`,
    )
    for (const { node, reason, message } of agent.failures ?? [])
      lines.push(`            ${node}: ${reason}: ${message}`)
  }
  const flow = status?.flow
  if (flow !== undefined) {
    const { window, eventsIn = 0, eventsOut = 0, dropped = 0, errors = 0, lagSeconds, buffered } = flow
    const parts = [`in ${eventsIn}`, `out ${eventsOut}`, `dropped ${dropped}`, `errors ${errors}`]
    if (lagSeconds !== undefined) parts.push(`${lagSeconds} s behind`)
    if (buffered !== undefined) parts.push(`${buffered} buffered`)
    lines.push(`  flow      ${parts.join(', ')}${window === undefined ? '' : ` in ${window}`}`)
  }
  const tests = status?.tests
  if (tests !== undefined) lines.push(`  tests     ${tests.passed ?? 0} passed, ${tests.failed ?? 0} failed`)
  return lines.join('\n')
}
