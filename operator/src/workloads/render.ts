// Everything that an Agent owns besides its bundle, as objects to be applied. Pure: the same Agent and input give the same
// objects in the same order.

import type { Problem } from '@penstock/agent/schema/problems'
import { type Agent, isTenants, misplacementOf, type Platform } from '../api/agent.ts'
import { metadataNetworks } from '../api/networks.ts'
import { describeAggregator, describeDrain } from './aggregator.ts'
import type { Describe, Manifest } from './manifest.ts'
import { synthesise } from './manifest.ts'
import {
  agentPort,
  authorityName,
  awayLabels,
  bindingName,
  kubeletPort,
  longestName,
  objectLabels,
  ownedBy,
  podLabels,
  sharedLabels,
  workloadName,
} from './names.ts'
import { describeNodeAgent } from './node-agent.ts'
import type { WorkloadInput } from './pod.ts'
import { podTemplateProblems } from './pod-template.ts'

export type { Manifest } from './manifest.ts'
export type { WorkloadInput } from './pod.ts'

/** Roles that the chart ships; an operator may bind these, those for Leases and for events, and no other. */
export const agentRoles = { Node: 'penstock-agent-node', Aggregator: 'penstock-agent-aggregator' } as const

/**
 * To write the Leases of Aggregators. Apart, because it is bound in the namespace of an Agent alone: bound for the cluster, any account of
 * a tenant could take the Leases of all others.
 */
export const electionRole = 'penstock-agent-election'

/** To read the events of the whole cluster. Apart, because a tenant can use the account of an Aggregator in its own namespace. */
export const eventsRole = 'penstock-agent-events'

/**
 * The objects of an Agent, in the order in which they are applied. An Agent with problems (`workloadProblems`) is not rendered:
 * what it had stays.
 */
export function renderWorkloads(agent: Agent, input: WorkloadInput): Manifest[] {
  return synthesise((add) => {
    const { namespace } = agent.metadata
    const metadata = {
      ...(namespace === undefined ? {} : { namespace }),
      labels: objectLabels(agent),
      ownerReferences: ownedBy(agent),
    }
    const name = workloadName(agent)
    if (input.operatorAuthority !== undefined) {
      add({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: authorityName(agent), ...metadata },
        data: { 'ca.crt': input.operatorAuthority },
      })
    }
    const { mode } = agent.spec
    if (mode === 'Sidecar') return // the pods are the users' own
    add({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, ...metadata },
      automountServiceAccountToken: false,
    })
    describeBindings(agent, mode, input, add)
    const policyMode = agent.spec.networkPolicy?.mode
    if (policyMode === 'Generated') describeNetworkPolicy(agent, add, generatedEgress(agent, input))
    else if (policyMode === undefined && input.networkPolicy !== undefined)
      describeNetworkPolicy(
        agent,
        add,
        input.networkPolicy === 'Metadata' ? undefined : egressButMetadata(agent, input),
      )
    if (mode === 'Node') describeNodeAgent(agent, input, add)
    else describeAggregator(agent, input, add)
    if (input.podMonitors === true && agent.spec.monitoring?.podMonitor?.enabled !== false)
      describePodMonitor(agent, input, add)
  })
}

/** The Jobs that empty volumes of pods that are no more. */
export function renderDrains(agent: Agent, input: WorkloadInput, ordinals: readonly number[]): Manifest[] {
  return synthesise((add) => {
    for (const ordinal of ordinals) describeDrain(agent, input, ordinal, add)
  })
}

/** What keeps an Agent from being rendered, beyond what the schema of the kind says. */
export function workloadProblems(agent: Agent, { rolesOnly = false } = {}): Problem[] {
  const problems = podTemplateProblems(agent)
  const { name } = agent.metadata
  const { length, why } = longestName(agent)
  const isLabel = agent.spec.mode !== 'Aggregator' || !name.includes('.')
  if (name.length > length || !isLabel) {
    const message = isLabel
      ? `\`metadata.name\` has ${name.length} characters, more than ${length}: ${why}`
      : '`metadata.name` has a dot: a Service is named after it'
    problems.push({ severity: 'error', path: 'metadata.name', message, help: 'Choose another name.' })
  }
  const { node, aggregator } = agent.spec
  if (rolesOnly && node?.metadata?.source === 'Kubelet') {
    const path = 'node.metadata.source'
    const message = `\`${path}: Kubelet\` needs a right to \`nodes/pods\`, which an installation by Roles alone cannot give`
    problems.push({ severity: 'error', path, message, help: 'Leave it out: the API server is asked then.' })
  }
  for (const [path, value] of unavailable(agent)) {
    const message = `\`${path}: ${value}\` is not available in this version`
    problems.push({ severity: 'error', path, message, help: 'Leave it out.' })
  }
  // The pods with a sidecar are the users' own.
  const { podTemplate, networkPolicy, imagePullSecrets, monitoring } = agent.spec
  const foreign = { podTemplate, networkPolicy, imagePullSecrets, 'monitoring.podMonitor': monitoring?.podMonitor }
  for (const [path, value] of agent.spec.mode === 'Sidecar' ? Object.entries(foreign) : []) {
    if (value === undefined) continue
    const help = 'Set it for the pods that have the sidecar.'
    problems.push({ severity: 'error', path, message: `\`${path}\` has no effect in mode Sidecar`, help })
  }
  const folders = [
    ['node.dataDir.hostPath', node?.dataDir?.hostPath],
    ['node.logPaths.pods', node?.logPaths?.pods],
    ...(node?.logPaths?.extraReadOnly ?? []).map((path, index) => [`node.logPaths.extraReadOnly[${index}]`, path]),
  ] as const
  for (const [path = '', folder] of folders) {
    if (folder === undefined || (folder.startsWith('/') && folder !== '/' && !folder.split('/').includes('..')))
      continue
    const message = `\`${path}\` must be the absolute path of a folder; found "${folder}"`
    problems.push({ severity: 'error', path, message, help: 'For example /var/log/pods.' })
  }
  const budget = aggregator?.podDisruptionBudget
  if (budget?.maxUnavailable !== undefined && budget.minAvailable !== undefined) {
    const path = 'aggregator.podDisruptionBudget'
    const help = 'Give either `maxUnavailable` or `minAvailable`.'
    problems.push({ severity: 'error', path, message: `\`${path}\` has two limits`, help })
  }
  const scaling = aggregator?.autoscaling
  if (scaling !== undefined && (scaling.minReplicas ?? 1) > scaling.maxReplicas) {
    const path = 'aggregator.autoscaling.minReplicas'
    const message = `\`${path}\` is ${scaling.minReplicas}, more than \`maxReplicas\`, which is ${scaling.maxReplicas}`
    problems.push({ severity: 'error', path, message, help: 'Lower the one or raise the other.' })
  }
  return problems
}

/** What the kind has a place for and this version does not do: told, rather than taken and forgotten. */
function unavailable({ spec }: Agent): (readonly [string, string])[] {
  const { aggregator } = spec
  const asked: (readonly [string, unknown, boolean])[] = [
    [
      'aggregator.service.trafficDistribution',
      aggregator?.service?.trafficDistribution,
      aggregator?.service?.trafficDistribution !== undefined,
    ],
  ]
  return asked.flatMap(([path, value, refused]) => (refused ? [[path, String(value)] as const] : []))
}

/** What binds an agent's account to its rights, in namespaces; those of the cluster are bound for all Agents together. */
function describeBindings(agent: Agent, mode: keyof typeof agentRoles, input: WorkloadInput, add: Describe): void {
  const subjects = [subjectOf(agent)]
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const { namespace = '' } = agent.metadata
  if (input.namespaces === undefined) {
    if (mode !== 'Aggregator' || input.lease === undefined) return
    // Named as the Lease is, so that the operator may be kept to these names.
    const metadata = { name: input.lease, namespace, labels: objectLabels(agent), ownerReferences: ownedBy(agent) }
    add({ apiVersion, kind: 'RoleBinding', metadata, roleRef: roleRefOf('ClusterRole', electionRole), subjects })
    return
  }
  const away = { name: bindingName(agent), labels: awayLabels(agent) }
  for (const each of mode === 'Node' ? input.namespaces : [namespace]) {
    const metadata = { ...away, namespace: each }
    add({ apiVersion, kind: 'RoleBinding', metadata, roleRef: roleRefOf('Role', agentRoles[mode]), subjects })
  }
}

const roleRefOf = (kind: 'Role' | 'ClusterRole', name: string) => ({
  apiGroup: 'rbac.authorization.k8s.io',
  kind,
  name,
})
const subjectOf = (agent: Pick<Agent, 'metadata'>) => ({
  kind: 'ServiceAccount',
  name: workloadName(agent),
  namespace: agent.metadata.namespace,
})

/** The bindings of rights in the whole cluster. Each has the name of its role: the operator may write these and no other. */
export const clusterBindings: readonly string[] = [...Object.values(agentRoles), eventsRole]

/**
 * The bindings of rights in the whole cluster, with the accounts of all Agents of the platform. A tenant can use the account of an Agent in
 * its namespace, so those have none.
 */
export function renderRights(
  agents: Iterable<Agent>,
  platform: Platform,
  { operatorNamespaceUid }: { readonly operatorNamespaceUid: string | undefined },
): (Manifest & { readonly subjects: readonly object[] })[] {
  const key = ({ metadata }: Agent) => `${metadata.namespace}/${metadata.name}`
  const ours = [...agents]
    .filter((agent) => !isTenants(agent, platform) && misplacementOf(agent, platform) === undefined)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .toSorted((left, right) => (key(left) < key(right) ? -1 : 1))
  // They go with the operator's namespace, also when no operator is left to delete them.
  const owner = { apiVersion: 'v1', kind: 'Namespace', name: platform.namespace, uid: operatorNamespaceUid ?? '' }
  return clusterBindings.map((name) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: {
      name,
      labels: sharedLabels,
      ...(operatorNamespaceUid === undefined ? {} : { ownerReferences: [owner] }),
    },
    roleRef: roleRefOf('ClusterRole', name),
    subjects: ours
      .filter(
        ({ spec: { mode } }) =>
          mode !== 'Sidecar' && name === (name === eventsRole && mode === 'Aggregator' ? eventsRole : agentRoles[mode]),
      )
      .map(subjectOf),
  }))
}

const tcp = (port: number) => ({ protocol: 'TCP', port })
const nameResolution = { ports: [{ protocol: 'UDP', port: 53 }, tcp(53)] }

/** Ports of the cluster itself that an agent speaks to. */
function clusterPorts(agent: Agent, input: WorkloadInput): number[] {
  const kubelet = agent.spec.node?.metadata?.source === 'Kubelet' ? [kubeletPort] : []
  return [...(input.apiServerPorts ?? [443, 6443]), portOf(input.operatorUrl), ...kubelet]
}

const portList = (ports: readonly number[]) => ({ ports: [...new Set(ports)].sort((a, b) => a - b).map(tcp) })

/** Out: name resolution, the API server, the operator, and where the bundle's components go. */
const generatedEgress = (agent: Agent, input: WorkloadInput) => [
  nameResolution,
  portList([...clusterPorts(agent, input), ...(input.egressPorts ?? [])]),
]

/**
 * Out: everywhere but to the metadata services. Pods and the cluster's own ports are named besides, because some networks take nodes and
 * pods for part of no block of addresses.
 */
const egressButMetadata = (agent: Agent, input: WorkloadInput) => [
  nameResolution,
  portList(clusterPorts(agent, input)),
  { to: [{ namespaceSelector: {} }] },
  {
    to: [
      { ipBlock: { cidr: '0.0.0.0/0', except: metadataNetworks.v4 } },
      { ipBlock: { cidr: '::/0', except: metadataNetworks.v6 } },
    ],
  },
]

/** In: who reads metrics, and probes. No source listens. */
function describeNetworkPolicy(agent: Agent, add: Describe, egress: readonly object[] | undefined): void {
  add({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: workloadName(agent),
      ...(agent.metadata.namespace === undefined ? {} : { namespace: agent.metadata.namespace }),
      labels: objectLabels(agent),
      ownerReferences: ownedBy(agent),
    },
    spec: {
      podSelector: { matchLabels: podLabels(agent) },
      policyTypes: egress === undefined ? ['Ingress'] : ['Ingress', 'Egress'],
      ingress: [{ ports: [tcp(agentPort)] }],
      ...(egress === undefined ? {} : { egress }),
    },
  })
}

function describePodMonitor(agent: Agent, input: WorkloadInput, add: Describe): void {
  const { labels: more, interval } = agent.spec.monitoring?.podMonitor ?? {}
  add({
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PodMonitor',
    metadata: {
      name: workloadName(agent),
      ...(agent.metadata.namespace === undefined ? {} : { namespace: agent.metadata.namespace }),
      labels: { ...more, ...objectLabels(agent) },
      ownerReferences: ownedBy(agent),
    },
    spec: {
      selector: { matchLabels: podLabels(agent) },
      podMetricsEndpoints: [
        {
          port: 'observe',
          path: '/metrics',
          interval: interval ?? '30s',
          ...(input.metricsTokenSecret === undefined
            ? {}
            : { authorization: { type: 'Bearer', credentials: { name: input.metricsTokenSecret, key: 'token' } } }),
        },
      ],
    },
  })
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url)
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}
