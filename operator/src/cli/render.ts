// `penstock render`: prints the agent configuration for resources: from files, from a cluster, or for the agents of one node. Secret
// values are not shown.

import { errorText, PenstockError } from '@penstock/agent/errors'
import type { Flags } from '@penstock/agent/program'
import { stringify } from 'yaml'
import { type Agent, platformSeen, takes } from '../api/agent.ts'
import { type KubeObject, keyOf, type ResourceType } from '../api/object.ts'
import { type CompiledResources, compileFiles, compileResources } from '../compile/config.ts'
import { compilePipeline } from '../compile/pipeline.ts'
import { type Resource, resourceOf } from '../compile/resources.ts'
import { isReason, type KubeClient } from '../kube/client.ts'
import { namespaceType, podType } from '../kube/resource-types.ts'
import { labels } from '../workloads/names.ts'
import { clusterNameOption, helpOf, parseFlags, resourceOptions } from './arguments.ts'
import { type ClusterFlags, connect, connectionOptions, namespaceOption, typeOf } from './cluster.ts'
import { printProblems } from './problems.ts'

export const options = {
  ...resourceOptions,
  ...clusterNameOption,
  ...namespaceOption('of the Pipelines'),
  'all-namespaces': { type: 'boolean', short: 'A', help: 'Pipelines of all namespaces, and ClusterPipelines.' },
  node: { type: 'string', value: 'NODE', help: 'Print the configuration of the agents on this node.' },
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock render [-f] PATH…
       penstock render [-n NAMESPACE | -A]
       penstock render --node NODE

Prints the agent configuration of resources: of those in files, of the Pipelines of a cluster, or of everything on a node. Values of Secrets are shown as ***; so are those of ConfigMaps from a cluster.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const { node, 'cluster-name': clusterName } = values
  const file = [...values.file, ...words]
  if (file.length > 0 && (node !== undefined || values.namespace !== undefined || values['all-namespaces']))
    throw new PenstockError(
      'PEN_USAGE',
      'Use `-f PATH`, or select resources of the cluster with `-n`, `-A` or `--node`.',
    )
  const compiled =
    file.length === 0
      ? await fromCluster(values, node, clusterName)
      : compileFiles(file, {
          ownMachine: true,
          standalone: true,
          redacted: true,
          recursive: values.recursive,
          clusterName,
        })
  if (compiled === undefined) return 1
  if (!printProblems(compiled.problems)) return 78
  process.stdout.write(stringify(compiled.config, { lineWidth: 0 }).replaceAll('$', '$$$$'))
  return 0
}

async function fromCluster(
  flags: ClusterFlags,
  node: string | undefined,
  clusterName: string | undefined,
): Promise<CompiledResources | undefined> {
  const { client, namespace } = await connect(node === undefined ? flags : { ...flags, 'all-namespaces': true })
  const list = async (type: ResourceType, where?: string) => {
    try {
      return (await client.list<KubeObject>(type, { namespace: where })).map(resourceOf)
    } catch (error) {
      // Authors may read their own namespace, but not always the objects that the platform shares with it.
      if (!isReason(error, 'Forbidden')) throw error
      console.error(`warning: ${errorText(error)}\n  References to them are listed below, and omitted.`)
      return []
    }
  }
  const all = (kind: string, where?: string) => list(typeOf(kind), where)
  const shared = [
    ...(await all('ClusterSource')),
    ...(await all('ClusterSink')),
    ...(await all('Source', namespace)),
    ...(await all('Sink', namespace)),
    ...(await list(namespaceType)),
  ]
  let pipelines = [
    ...(await all('Pipeline', namespace)),
    ...(namespace === undefined ? await all('ClusterPipeline') : []),
  ]
  if (node !== undefined) {
    const agents = await agentsOn(client, node)
    if (agents.length === 0) {
      console.error(`No agent runs on node ${node}.`)
      return undefined
    }
    pipelines = pipelines.filter((pipeline) => isRun(pipeline, agents, shared))
  }
  if (pipelines.length === 0) {
    const where = node !== undefined ? ` for node ${node}` : namespace === undefined ? '' : ` in namespace ${namespace}`
    console.error(`There is no Pipeline${where}.`)
    return undefined
  }
  // Unused shared objects are ignored.
  const used = new Set(
    pipelines.flatMap((pipeline) => compilePipeline(pipeline, shared, { ownMachine: false }).references),
  )
  const needed = shared.filter(({ kind, namespace: own, name }) => {
    return kind === 'Namespace' || used.has(`${kind} ${own === '' ? '' : `${own}/`}${name}`)
  })
  const compiled = compileResources([...pipelines, ...needed], { ownMachine: false, redacted: true, clusterName })
  // As in the operator, an invalid Pipeline does not affect the others.
  const problems = compiled.problems.map((problem) => ({ ...problem, severity: 'warning' as const }))
  return { ...compiled, problems }
}

/** Agents with a pod on a node. */
async function agentsOn(client: KubeClient, node: string): Promise<readonly Agent[]> {
  const pods = await client.list(podType, { labelSelector: labels.agent, fieldSelector: `spec.nodeName=${node}` })
  const names = new Set(pods.map(({ metadata }) => `${metadata.namespace}/${metadata.labels?.[labels.agent]}`))
  return (await client.list<Agent>(typeOf('Agent'))).filter((agent) => names.has(keyOf(agent)))
}

function isRun(pipeline: Resource, agents: readonly Agent[], shared: readonly Resource[]): boolean {
  const { metadata } = pipeline.content as { readonly metadata: KubeObject['metadata'] }
  const { mode, secretRefs, lent, withheld } = compilePipeline(pipeline, shared, { ownMachine: false })
  const space = shared.find(({ kind, name }) => kind === 'Namespace' && name === metadata.namespace)
  const its = (space?.content['metadata'] as KubeObject['metadata'] | undefined)?.labels
  const asked = { mode, namespace: metadata.namespace, labels: metadata.labels ?? {}, secretRefs, lent, withheld }
  const platform = platformSeen(agents)
  return agents.some((agent) => takes(agent, asked, its, platform))
}
