// `penstock why POD`: shows which Pipelines read a pod's logs, which do not, and why. Exit code 1 if none reads them.

import {
  compileSelection,
  consentLabel,
  excludedContainers,
  findComponent,
  notExcluded,
  type PodObject,
  podFields,
} from '@penstock/agent/config'
import { errorText, PenstockError } from '@penstock/agent/errors'
import { compileSelector } from '@penstock/agent/kube'
import { outputFormats, rowsText } from '@penstock/agent/output'
import { type Flags, sheetOf } from '@penstock/agent/program'
import { type Agent, platformSeen, takes } from '../api/agent.ts'
import { conditionOf } from '../api/conditions.ts'
import { type KubeObject, keyOf } from '../api/object.ts'
import type { Pipeline, SourceEntry } from '../api/pipeline.ts'
import type { SourceResource } from '../api/source.ts'
import type { HubSubscription } from '../compile/artifact.ts'
import { subscriptionOf } from '../compile/compiled.ts'
import { compilePipeline } from '../compile/pipeline.ts'
import { resourceOf } from '../compile/resources.ts'
import { type KubeClient, KubeError } from '../kube/client.ts'
import { namespaceType, podType } from '../kube/resource-types.ts'
import type { TopLine } from '../serving/observe/top-look.ts'
import { helpOf, objectName, parseFlags } from './arguments.ts'
import { connect, namespaceOption, typeOf } from './cluster.ts'
import { OperatorConnection, type OperatorFlags, operatorFlagHelp, operatorOptions } from './operator-client.ts'
import { explainGone, type LastSeen, lastSeen } from './why-gone.ts'
import {
  fields,
  isRead,
  notes,
  type PipelineAnswer,
  type PodPosition,
  readingOf,
  type WhyReport,
  whyText,
} from './why-report.ts'
import { type Files, readingStateOf } from './why-state.ts'

type Labels = Readonly<Record<string, string>>

/** The fields of a container's status that show whether it has ever run. */
interface ContainerState {
  readonly name: string
  readonly restartCount?: number
  readonly state?: {
    readonly waiting?: { readonly reason?: string }
    readonly running?: object
    readonly terminated?: object
  }
  readonly lastState?: { readonly running?: object; readonly terminated?: object }
}

type Pod = PodObject & KubeObject & { readonly spec: { readonly containers: readonly { readonly name: string }[] } }

const own = {
  ...namespaceOption('of the pod'),
  output: {
    type: 'string',
    short: 'o',
    default: 'text',
    oneOf: outputFormats,
    value: 'FORMAT',
    help: 'Format: text; table, json and yaml have one row per Pipeline (text).',
  },
} as const satisfies Flags

export const options = { ...own, ...operatorOptions } as const satisfies Flags

export const usage = `Usage: penstock why POD [FLAGS]

Shows which Pipelines read the logs of a pod, which do not and why, how far the agent has read each file, which lines it dropped, and which files it does not read because they were compressed before the Pipeline began. Of a pod that was just deleted it shows which Pipelines still read its files. Resources that you may not read are left out, and the command names them. Positions need the verb \`get\` on \`pipelines\` and \`clusterpipelines\`. Exit code 1 if no Pipeline reads the logs.

${helpOf(own)}

${operatorFlagHelp}
`

/** Timeout for the operator to start its response: it may be busy, or far away. */
const operatorMs = 30_000
/** Timeout for the agent's answer after the response has started. */
const agentMs = 6000

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const [word, ...more] = words
  if (word === undefined || more.length > 0) {
    throw new PenstockError('PEN_USAGE', 'Name one pod: penstock why POD [-n NAMESPACE].')
  }
  const name = objectName(word, 'Pod')
  const { output } = values
  const { client, namespace = 'default' } = await connect(values)
  const pod = await client.get<Pod>(podType, namespace, name)
  const last = pod === undefined ? await lastSeen(client, namespace, name) : undefined
  if (pod === undefined && last === undefined) {
    console.error(`There is no pod ${name} in namespace ${namespace}, and no event of a deleted one.`)
    return 1
  }
  const report =
    pod === undefined
      ? await explainGone(last as LastSeen, (kind) => positionOf(values, kind, last as LastSeen))
      : await explain(client, pod, (kind) =>
          positionOf(values, kind, { namespace, uid: pod.metadata.uid ?? '', node: pod.spec.nodeName ?? '' }),
        )
  if (output === 'text') console.log(whyText(report, sheetOf(process.stdout)))
  else {
    for (const note of notes(report)) console.error(note.trimStart())
    process.stdout.write(rowsText(fields, report.pipelines, output))
  }
  return isRead(report) ? 0 : 1
}

/** The reports of the node's agents about the Pipelines of one kind, by name. */
async function positionOf(
  flags: OperatorFlags,
  kind: string,
  { namespace, uid, node }: Pick<LastSeen, 'namespace' | 'uid' | 'node'>,
): Promise<PodPosition> {
  const query = new URLSearchParams({ kind, pod: uid, node, interval: '1000', for: '60000' })
  if (kind === 'Pipeline') query.set('namespace', namespace)
  const limit = new AbortController()
  const { signal } = limit
  let timer = setTimeout(() => limit.abort(), operatorMs)
  let hasBegun = false
  let last: TopLine | undefined
  try {
    using client = await OperatorConnection.open(flags, 'get pipelines and clusterpipelines')
    for await (const [received] of client.lines(`/v1/top?${query}`, signal)) {
      if (!hasBegun) {
        hasBegun = true
        clearTimeout(timer)
        timer = setTimeout(() => limit.abort(), agentMs)
      }
      if (received.kind !== 'figures') continue
      last = received as TopLine
      // The agent counts the lines of files that it does not read.
      if (last.complete && !isCounting(last)) break
    }
  } catch (error) {
    if (last === undefined) {
      const silent = hasBegun ? 'the agent of its node' : 'the operator'
      return { problem: signal.aborted ? `${silent} has not answered` : errorText(error) }
    }
  } finally {
    clearTimeout(timer)
  }
  // The absence of an agent is only certain when all agents have had time to report.
  const rows = last?.pipelines.filter(({ agents }) => last?.complete === true || agents.asked > 0) ?? []
  return new Map(rows.map((row) => [row.name, row]))
}

function isCounting({ pipelines }: TopLine): boolean {
  const positions = pipelines.flatMap((row) => row.positions ?? [])
  return positions.some(({ compressed }) => compressed !== undefined && compressed.lines === undefined)
}

async function explain(
  client: KubeClient,
  pod: Pod,
  positionIn: (kind: string) => Promise<PodPosition>,
): Promise<WhyReport> {
  const { namespace = 'default', labels = {} } = pod.metadata
  const node = pod.spec.nodeName
  const permissions: Permission[] = []
  const [own, cluster, agents, spaces, ...sources] = await Promise.all([
    client.list<Pipeline>(typeOf('Pipeline'), { namespace }),
    allowed(permissions, 'ClusterPipelines', client.list<Pipeline>(typeOf('ClusterPipeline'))),
    allowed(permissions, 'Agents', client.list<Agent>(typeOf('Agent'))),
    allowed(
      permissions,
      `the labels of namespace ${namespace}`,
      client.get(namespaceType, undefined, namespace).then((found) => (found === undefined ? [] : [found])),
    ),
    allowed(permissions, `Sources of namespace ${namespace}`, client.list<KubeObject>(typeOf('Source'), { namespace })),
    allowed(permissions, 'ClusterSources', client.list<KubeObject>(typeOf('ClusterSource'))),
  ])
  const [space] = spaces ?? []
  const namespaceLabels = space?.metadata.labels ?? {}
  const unread = permissions.filter(({ isRefused }) => isRefused).map(({ name }) => name)
  const about = {
    ...{ pod: keyOf(pod), phase: pod.status?.phase, node, unread, namespace },
    ...{ hasClusterPipelines: !!cluster, unstarted: unstartedOf(pod) },
  }
  const isWanted = compileSelector(notExcluded)
  for (const [what, its] of [
    ['It', labels],
    [`Its namespace ${namespace}`, namespaceLabels],
  ] as const) {
    if (!isWanted(its)) return { ...about, excluded: what, pipelines: [] }
  }
  const resources = [...sources.flatMap((found) => found ?? []), ...(space === undefined ? [] : [space])]
  const selected = [...own, ...(cluster ?? [])].map((pipeline) => {
    const subscriptions = subscriptionsOf(pipeline, resources)
    const entries = pipeline.spec.sources.map((entry) => ({
      name: entry.name,
      ...sourceAnswer(pipeline, entry, subscriptions.get(entry.name), resources, pod, namespaceLabels),
    }))
    const reads = entries.some((entry) => entry.reads)
    const obstacles = reads ? obstaclesOf(pipeline, spaces === undefined ? undefined : agents, namespaceLabels) : []
    return { pipeline, entries, reads, obstacles }
  })
  const asked = selected.filter(({ reads, obstacles }) => reads && obstacles.length === 0 && node !== undefined)
  const kinds = [...new Set(asked.map(({ pipeline }) => pipeline.kind))]
  // In parallel, so that a slow operator or agent delays the command only once.
  const found = new Map(await Promise.all(kinds.map(async (kind) => [kind, await positionIn(kind)] as const)))
  const pipelines = selected.map(({ pipeline, entries, reads, obstacles }): PipelineAnswer => {
    const answer = { kind: pipeline.kind, name: keyOf(pipeline), sources: entries }
    if (!reads) return { ...answer, reads, obstacles }
    const position = obstacles.length > 0 ? undefined : found.get(pipeline.kind)
    const files = position === undefined ? 'unknown' : filesIn(position, pipeline.metadata.name)
    const state =
      obstacles.length > 0 ? undefined : readingStateOf(pipeline, node !== undefined, files, failureOn(pipeline, node))
    const all = state?.obstacle === undefined ? obstacles : [...obstacles, state.obstacle]
    const { lagSeconds, dropped } = pipeline.status?.flow ?? {}
    return {
      ...answer,
      reads: all.length === 0,
      obstacles: all,
      rollout: state?.rollout,
      isEarlier: state?.isEarlier,
      events: conditionOf(pipeline.status?.conditions, 'Flowing'),
      lagSeconds,
      dropped,
      // No agent answers about a Pipeline that none runs.
      reading:
        position === undefined || (state?.obstacle !== undefined && isUnheard(position, pipeline.metadata.name))
          ? undefined
          : readingOf(position, pipeline.metadata.name),
    }
  })
  return { ...about, pipelines }
}

interface Permission {
  readonly name: string
  isRefused: boolean
}

/** The objects, or undefined if the user may not read them. `permissions` lists the names in the order of the calls. */
async function allowed<T>(permissions: Permission[], name: string, objects: Promise<readonly T[]>) {
  const permission: Permission = { name, isRefused: false }
  permissions.push(permission)
  try {
    return await objects
  } catch (error) {
    if (!(error instanceof KubeError) || error.status !== 403) throw error
    permission.isRefused = true
    return undefined
  }
}

/** Whether the operator answers, and no agent of the node runs the Pipeline. */
function isUnheard(found: PodPosition, name: string): boolean {
  return !('problem' in found) && !found.has(name)
}

function filesIn(found: PodPosition, name: string): Files {
  const reading = readingOf(found, name)
  if ('problem' in reading) return reading.isAbsent === true ? 'absent' : 'unknown'
  return reading.positions.some(({ compressed }) => compressed === undefined) ? 'open' : 'none'
}

/** The subscriptions of a Pipeline's sources, by which agents select pods. */
function subscriptionsOf(pipeline: Pipeline, resources: readonly KubeObject[]): ReadonlyMap<string, HubSubscription> {
  const compiled = compilePipeline(resourceOf(pipeline), resources.map(resourceOf), { ownMachine: false })
  return new Map(compiled.podLogs.map((source) => [source.name, subscriptionOf(source, pipeline.metadata.uid ?? '')]))
}

function sourceAnswer(
  { metadata }: Pipeline,
  { type, ref }: SourceEntry,
  subscription: HubSubscription | undefined,
  resources: readonly KubeObject[],
  pod: Pod,
  namespaceLabels: Labels,
): { reads: boolean; why: string } {
  const no = (why: string) => ({ reads: false, why })
  if (subscription === undefined) {
    const shared = ref === undefined ? undefined : resources.find((each) => isReferred(each, ref, metadata.namespace))
    if (ref !== undefined && shared === undefined) return no(`${ref.kind} ${ref.name} does not exist`)
    const isOpen = ref?.kind !== 'ClusterSource' || metadata.namespace === undefined
    const known = type ?? (shared as SourceResource | undefined)?.spec.type
    if (known !== undefined && findComponent('source', known)?.type !== 'orchestrator_logs')
      return no(`a source of type ${known} reads no pod logs`)
    return no(
      isOpen ? 'it is not accepted' : `${ref?.kind} ${ref?.name} is not granted to namespace ${metadata.namespace}`,
    )
  }
  // The agents' own judgement.
  const selection = compileSelection(subscription)
  const { namespace = '', labels = {}, annotations = {} } = pod.metadata
  if (!selection.namespace(namespace, namespaceLabels)) {
    const { namespaceSelector = '' } = subscription
    return no(
      `its selector ${namespaceSelector} does not match the labels of namespace ${namespace} (${labelText(namespaceLabels)})`,
    )
  }
  if (subscription.optIn === true && labels[consentLabel] !== 'true')
    return no(`it only reads pods with the label ${consentLabel}: "true", which this pod does not have`)
  const fields = podFields(pod)
  if (!selection.pod({ labels, fields })) {
    const byLabels = compileSelection({ ...subscription, fieldSelector: undefined }).pod({ labels, fields })
    return no(
      byLabels
        ? `its field selector ${subscription.fieldSelector} does not match the pod`
        : `its selector ${subscription.podSelector} does not match the labels of the pod (${labelText(labels)})`,
    )
  }
  const excluded = excludedContainers(annotations)
  const { initContainers = [], ephemeralContainers = [] } = pod.spec
  const containers = [...initContainers, ...pod.spec.containers, ...ephemeralContainers].map(({ name }) => name)
  const kept = containers.filter((container) => selection.container(container, excluded))
  if (kept.length === 0) return no(`all its containers are excluded (${containers.join(', ')})`)
  const without = containers.filter((container) => !kept.includes(container))
  return {
    reads: true,
    why: `containers ${kept.join(', ')}${without.length === 0 ? '' : `; left out: ${without.join(', ')}`}`,
  }
}

/** The containers of a pod with a node and their reasons to wait, if none of them has ever started. */
function unstartedOf({ spec, status }: Pod): string | undefined {
  const found = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])] as ContainerState[]
  const hasRun = ({ state, lastState, restartCount = 0 }: ContainerState) =>
    restartCount > 0 || [state, lastState].some((each) => each?.running !== undefined || each?.terminated !== undefined)
  if (spec.nodeName === undefined || found.length === 0 || found.some(hasRun)) return undefined
  return found.map(({ name, state }) => `${name} (${state?.waiting?.reason ?? 'waiting'})`).join(', ')
}

function isReferred(
  object: KubeObject,
  { kind, name }: { readonly kind: string; readonly name: string },
  namespace: string | undefined,
): boolean {
  return (
    object.kind === kind &&
    object.metadata.name === name &&
    (kind !== 'Source' || object.metadata.namespace === namespace)
  )
}

/** Why no agent at all runs a Pipeline that selects the pod. */
function obstaclesOf(pipeline: Pipeline, agents: readonly Agent[] | undefined, namespaceLabels: Labels): string[] {
  if (pipeline.spec.suspend === true) return ['it is suspended: spec.suspend is true']
  const { labels, namespace } = pipeline.metadata
  const asked = { mode: 'Node', namespace, labels } as const
  if (agents === undefined) return []
  const platform = platformSeen(agents)
  const isTaken = agents.some((agent) => takes(agent, asked, namespaceLabels, platform))
  return isTaken ? [] : ['no Agent of mode Node selects it']
}

function failureOn({ status }: Pipeline, node: string | undefined): string | undefined {
  const failures = (status?.agents ?? []).flatMap((agent) => agent.failures ?? [])
  const found = failures.find((failure) => failure.node === node)
  return found === undefined ? undefined : `the agent of its node cannot run it: ${found.reason}: ${found.message}`
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  return pairs.length === 0 ? 'none' : pairs.join(', ')
}
