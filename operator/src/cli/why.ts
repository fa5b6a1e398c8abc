// `penstock why POD`: which Pipelines read a pod's logs, which do not, and for what reason. Exit 1 when none reads it.

import { parseArgs } from 'node:util'
import { PenstockError } from '@penstock/agent/errors'
import { findComponent } from '@penstock/agent/registry'
import { type Agent, takes } from '../api/agent.ts'
import { conditionOf } from '../api/conditions.ts'
import { type KubeObject, keyOf } from '../api/object.ts'
import type { Pipeline, SourceEntry } from '../api/pipeline.ts'
import { selects } from '../api/selector.ts'
import type { Source } from '../api/source.ts'
import type { KubeClient } from '../kube/client.ts'
import { namespaceType, podType } from '../kube/types.ts'
import { clusterOptions, connect, typeOf } from './cluster.ts'

interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string; readonly containers: readonly { readonly name: string }[] }
  readonly status?: { readonly phase?: string }
}

export async function run(argv: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args: argv, allowPositionals: true, options: clusterOptions })
  const [name, ...more] = positionals
  if (name === undefined || more.length > 0) {
    throw new PenstockError('PEN_USAGE', 'Name one pod: penstock why POD [-n NAMESPACE].')
  }
  const { client, namespace = 'default' } = await connect(values)
  const pod = await client.get<Pod>(podType, namespace, name)
  if (pod === undefined) {
    console.error(`There is no pod ${name} in namespace ${namespace}.`)
    return 1
  }
  const { lines, read } = await explain(client, pod)
  console.log(lines.join('\n'))
  return read ? 0 : 1
}

async function explain(client: KubeClient, pod: Pod): Promise<{ lines: string[]; read: boolean }> {
  const { namespace = 'default', labels = {} } = pod.metadata
  const node = pod.spec.nodeName
  const lines = [`Pod ${keyOf(pod)} (${pod.status?.phase ?? 'no phase'}) on node ${node ?? 'none yet'}`]
  if (node === undefined) lines.push('  It has no node, so it has no logs yet.')
  if (labels['penstock.dev/exclude'] === 'true') {
    lines.push('  It has the label penstock.dev/exclude: "true": agents leave it out whatever Pipelines say.')
    return { lines, read: false }
  }
  const [own, cluster, agents, space] = await Promise.all([
    client.list<Pipeline>(typeOf('Pipeline'), { namespace }),
    client.list<Pipeline>(typeOf('ClusterPipeline')),
    client.list<Agent>(typeOf('Agent')),
    client.get(namespaceType, undefined, namespace),
  ])
  const namespaceLabels = space?.metadata.labels ?? {}
  let read = false
  for (const pipeline of [...own, ...cluster]) {
    lines.push(`  ${pipeline.kind} ${keyOf(pipeline)}`)
    const accepted = conditionOf(pipeline.status?.conditions, 'Accepted')
    const programmed = conditionOf(pipeline.status?.conditions, 'Programmed')
    let selected = false
    for (const entry of pipeline.spec.sources) {
      const answer = await sourceAnswer(client, pipeline, entry, pod, namespaceLabels)
      lines.push(`    ${answer.reads ? 'reads it' : 'does not'}: source ${entry.name}: ${answer.why}`)
      if (answer.reads) selected = true
    }
    if (!selected) continue
    const obstacles = obstaclesOf(pipeline, agents, namespaceLabels, node)
    if (accepted?.status === 'False' && pipeline.status?.programmedGeneration === undefined) {
      obstacles.push(`it is not accepted: ${accepted.reason}: ${accepted.message}`)
    }
    if (programmed?.status === 'False') obstacles.push(`no agent runs it: ${programmed.reason}: ${programmed.message}`)
    for (const obstacle of obstacles) lines.push(`    but ${obstacle}`)
    if (obstacles.length === 0) read = true
    const flowing = conditionOf(pipeline.status?.conditions, 'Flowing')
    if (flowing !== undefined)
      lines.push(`    events: ${flowing.reason}${flowing.message === '' ? '' : `: ${flowing.message}`}`)
    const { lagSeconds, dropped } = pipeline.status?.flow ?? {}
    if (lagSeconds !== undefined) lines.push(`    reading is ${lagSeconds} s behind`)
    if (dropped !== undefined) lines.push(`    dropped lately: ${dropped}`)
  }
  if (own.length + cluster.length === 0) {
    lines.push(`  There is no Pipeline in namespace ${namespace} and no ClusterPipeline.`)
  }
  lines.push(read ? 'Its logs are read.' : 'Its logs are not read.')
  return { lines, read }
}

async function sourceAnswer(
  client: KubeClient,
  pipeline: Pipeline,
  entry: SourceEntry,
  pod: Pod,
  namespaceLabels: Readonly<Record<string, string>>,
): Promise<{ reads: boolean; why: string }> {
  const no = (why: string) => ({ reads: false, why })
  let { type, selector } = entry
  if (entry.ref !== undefined) {
    const { kind, name } = entry.ref
    const source = await client.get<Source>(
      typeOf(kind),
      kind === 'Source' ? pipeline.metadata.namespace : undefined,
      name,
    )
    if (source === undefined) return no(`${kind} ${name} does not exist`)
    type = source.spec.type
    selector = selector ?? source.spec.selector
  }
  if (type === undefined || findComponent('source', type)?.type !== 'orchestrator_logs') {
    return no(`a source of type ${type} reads no pod logs`)
  }
  const { labels = {}, annotations = {} } = pod.metadata
  if (
    pipeline.kind === 'ClusterPipeline' &&
    selector?.namespaces !== undefined &&
    !selects(selector.namespaces, namespaceLabels)
  ) {
    return no(
      `its selector does not match the labels of namespace ${pod.metadata.namespace} (${labelText(namespaceLabels)})`,
    )
  }
  if (selector?.pods !== undefined && !selects(selector.pods, labels)) {
    return no(
      `its selector ${JSON.stringify(selector.pods)} does not match the labels of the pod (${labelText(labels)})`,
    )
  }
  if (selector?.optIn === true && labels['penstock.dev/collect'] !== 'true') {
    return no('it reads pods with the label penstock.dev/collect: "true" only, which the pod has not')
  }
  const left = new Set([
    ...(selector?.containers?.exclude ?? []),
    ...(annotations['penstock.dev/exclude-containers'] ?? '').split(',').map((each) => each.trim()),
  ])
  const containers = pod.spec.containers.map((container) => container.name)
  const kept = containers.filter((container) => !left.has(container))
  if (kept.length === 0) return no(`its containers are all left out (${containers.join(', ')})`)
  const without = containers.filter((container) => left.has(container))
  return {
    reads: true,
    why: `containers ${kept.join(', ')}${without.length === 0 ? '' : `; left out: ${without.join(', ')}`}`,
  }
}

/** Why no agent on the pod's node runs a Pipeline that selects the pod. */
function obstaclesOf(
  pipeline: Pipeline,
  agents: readonly Agent[],
  namespaceLabels: Readonly<Record<string, string>>,
  node: string | undefined,
): string[] {
  if (pipeline.spec.suspend === true) return ['it is suspended: spec.suspend is true']
  const { labels, namespace } = pipeline.metadata
  const asked = { mode: 'Node', namespace, labels } as const
  const willing = agents.filter((agent) => takes(agent, asked, namespaceLabels))
  if (willing.length === 0) return ['no Agent of mode Node selects it']
  const obstacles: string[] = []
  for (const agent of pipeline.status?.agents ?? []) {
    for (const failure of agent.failures ?? []) {
      if (failure.node === node)
        obstacles.push(`the agent of its node cannot run it: ${failure.reason}: ${failure.message}`)
    }
  }
  return obstacles
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  return pairs.length === 0 ? 'none' : pairs.join(', ')
}
