// Everything that an Agent owns besides its bundle, as objects to apply. Pure: the same Agent and input give the same
// objects in the same order.

import type { Problem } from '@penstock/agent/errors'
import { Construct } from 'constructs'
import { type Agent, agentDefaults, isTenants, misplacementOf, type Platform } from '../api/agent.ts'
import { metadataNetworks } from '../api/networks.ts'
import type { ObjectMeta, OwnerReference } from '../api/object.ts'
import { Aggregator, DrainJob } from './aggregator.ts'
import { type Manifest, ObjectConstruct, synthesise } from './manifest.ts'
import {
  agentPort,
  authorityName,
  awayLabels,
  bindingName,
  kubeletPort,
  maxNameLength,
  objectLabels,
  ownedBy,
  podLabels,
  sharedLabels,
  workloadName,
} from './names.ts'
import { NodeAgent } from './node-agent.ts'
import type { WorkloadInput } from './pod.ts'
import { podTemplateProblems } from './pod-template.ts'

export type { Manifest } from './manifest.ts'
export type { WorkloadInput } from './pod.ts'

/** Roles in the chart that an operator may bind, together with those for Leases and for events. */
export const agentRoles = { Node: 'penstock-agent-node', Aggregator: 'penstock-agent-aggregator' } as const

/**
 * The right to write the Leases of Aggregators. It is a separate role, because it is only bound in the namespace of an Agent: with a
 * cluster-wide binding, any tenant's account could take the Leases of all others.
 */
export const electionRole = 'penstock-agent-election'

/**
 * The right to read the events of the whole cluster. It is a separate role, because a tenant can use the account of an Aggregator
 * in its own namespace.
 */
export const eventsRole = 'penstock-agent-events'

/**
 * The objects of an Agent, in the order in which they are applied. An Agent with problems (`workloadProblems`) is not rendered: its
 * existing objects stay.
 */
export function renderWorkloads(agent: Agent, input: WorkloadInput): Manifest[] {
  return synthesise((chart) => new AgentInstallation(chart, agent, input))
}

/** The Jobs that drain the volumes of removed pods. */
export function renderDrains(agent: Agent, input: WorkloadInput, ordinals: readonly number[]): Manifest[] {
  return synthesise((chart) => {
    for (const ordinal of ordinals) new DrainJob(chart, agent, input, ordinal)
  })
}

class AgentInstallation extends Construct {
  constructor(scope: Construct, agent: Agent, input: WorkloadInput) {
    super(scope, 'agent')
    if (input.operatorAuthority !== undefined) {
      new ObjectConstruct(this, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: metadataOf(agent, authorityName(agent)),
        data: { 'ca.crt': input.operatorAuthority },
      })
    }
    const { mode, monitoring } = agent.spec
    if (mode === 'Sidecar') return // its pods belong to the users
    new ObjectConstruct(this, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: metadataOf(agent, workloadName(agent)),
      automountServiceAccountToken: false,
    })
    new AgentRights(this, agent, mode, input)
    const traffic = trafficOf(agent, input)
    if (traffic !== undefined) new AgentNetworkPolicy(this, agent, traffic.egress)
    if (mode === 'Node') new NodeAgent(this, agent, input)
    else new Aggregator(this, agent, input)
    if (input.podMonitors === true && monitoring?.podMonitor?.enabled !== false) new AgentMonitor(this, agent, input)
  }
}

/** Metadata of an object in the namespace of its Agent, which owns it. */
function metadataOf(agent: Agent, name: string) {
  const { namespace } = agent.metadata
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: objectLabels(agent),
    ownerReferences: ownedBy(agent),
  }
}

/** Problems that prevent rendering an Agent, in addition to those that the schema of the kind finds. */
export function workloadProblems(agent: Agent, { rolesOnly = false } = {}): Problem[] {
  const problems = podTemplateProblems(agent)
  const { name } = agent.metadata
  const { length, why } = maxNameLength(agent)
  const isLabel = agent.spec.mode !== 'Aggregator' || !name.includes('.')
  if (name.length > length || !isLabel) {
    const message = isLabel
      ? `\`metadata.name\` has ${name.length} characters, more than ${length}: ${why}`
      : '`metadata.name` contains a dot, but a Service is named after it'
    problems.push({ severity: 'error', path: 'metadata.name', message, help: 'Choose another name.' })
  }
  const { node, aggregator } = agent.spec
  if (rolesOnly && node?.metadata?.source === 'Kubelet') {
    const path = 'node.metadata.source'
    const message = `\`${path}: Kubelet\` needs the right to \`nodes/pods\`, which an installation with only Roles cannot grant`
    problems.push({ severity: 'error', path, message, help: 'Omit it: the agent then uses the API server.' })
  }
  for (const [path, value] of unavailable(agent)) {
    const message = `\`${path}: ${value}\` is not available in this version`
    problems.push({ severity: 'error', path, message, help: 'Leave it out.' })
  }
  // Pods with a sidecar belong to the users.
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
    const help = 'Set either `maxUnavailable` or `minAvailable`.'
    problems.push({ severity: 'error', path, message: `\`${path}\` has two limits`, help })
  }
  const scaling = aggregator?.autoscaling
  if (scaling !== undefined && (scaling.minReplicas ?? agentDefaults.aggregator.minReplicas) > scaling.maxReplicas) {
    const path = 'aggregator.autoscaling.minReplicas'
    const message = `\`${path}\` is ${scaling.minReplicas}, more than \`maxReplicas\`, which is ${scaling.maxReplicas}`
    problems.push({ severity: 'error', path, message, help: 'Lower the one or raise the other.' })
  }
  return problems
}

/** Fields of the kind that this version does not support: they are rejected, not ignored. */
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

/** Binds an agent's account to its rights in namespaces. Cluster-wide rights are bound for all Agents together (`renderRights`). */
class AgentRights extends Construct {
  constructor(scope: Construct, agent: Agent, mode: keyof typeof agentRoles, input: WorkloadInput) {
    super(scope, 'rights')
    const { namespace = '' } = agent.metadata
    if (input.namespaces === undefined) {
      if (mode !== 'Aggregator' || input.lease === undefined) return
      // It has the name of the Lease, so that the operator's right can be limited to these names.
      const metadata = { name: input.lease, namespace, labels: objectLabels(agent), ownerReferences: ownedBy(agent) }
      this.#bind(agent, metadata, roleRefOf('ClusterRole', electionRole))
      return
    }
    const away = { name: bindingName(agent), labels: awayLabels(agent) }
    for (const each of mode === 'Node' ? input.namespaces : [namespace])
      this.#bind(agent, { ...away, namespace: each }, roleRefOf('Role', agentRoles[mode]))
  }

  #bind(agent: Agent, metadata: ObjectMeta, roleRef: object): void {
    const apiVersion = 'rbac.authorization.k8s.io/v1'
    new ObjectConstruct(this, { apiVersion, kind: 'RoleBinding', metadata, roleRef, subjects: [subjectOf(agent)] })
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

/** The bindings of cluster-wide rights. Each has the name of its role: the operator may write exactly these. */
export const clusterBindings: readonly string[] = [...Object.values(agentRoles), eventsRole]

/**
 * The bindings of cluster-wide rights, with the accounts of all platform Agents. A tenant can use the account of an Agent in its namespace,
 * so tenants' Agents are excluded.
 */
export function renderRights(
  agents: Iterable<Agent>,
  platform: Platform,
  { owner }: { readonly owner: OwnerReference | undefined },
): (Manifest & { readonly subjects: readonly object[] })[] {
  const key = ({ metadata }: Agent) => `${metadata.namespace}/${metadata.name}`
  const ours = [...agents]
    .filter((agent) => !isTenants(agent, platform) && misplacementOf(agent, platform) === undefined)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .toSorted((left, right) => (key(left) < key(right) ? -1 : 1))
  return clusterBindings.map((name) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: {
      name,
      labels: sharedLabels,
      ...(owner === undefined ? {} : { ownerReferences: [owner] }),
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

/** Ports of the cluster itself to which an agent connects. */
function clusterPorts(agent: Agent, input: WorkloadInput): number[] {
  const kubelet = agent.spec.node?.metadata?.source === 'Kubelet' ? [kubeletPort] : []
  return [...(input.apiServerPorts ?? [443, 6443]), portOf(input.operatorUrl), ...kubelet]
}

const portList = (ports: readonly number[]) => ({ ports: [...new Set(ports)].sort((a, b) => a - b).map(tcp) })

/** Outgoing: DNS, the API server, the operator, and the destinations of the bundle's components. */
const generatedEgress = (agent: Agent, input: WorkloadInput) => [
  nameResolution,
  portList([...clusterPorts(agent, input), ...(input.egressPorts ?? [])]),
]

/**
 * Outgoing: everything except the metadata services. Pods and the cluster's own ports are listed separately, because some networks do
 * not match nodes and pods with address blocks.
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

/**
 * The rules of the Agent's NetworkPolicy; undefined if it has none. Without `egress`, all outgoing connections are
 * allowed.
 */
function trafficOf(agent: Agent, input: WorkloadInput): { readonly egress: readonly object[] | undefined } | undefined {
  const mode = agent.spec.networkPolicy?.mode
  if (mode === 'Generated') return { egress: generatedEgress(agent, input) }
  if (mode !== undefined || input.networkPolicy === undefined) return undefined
  return { egress: input.networkPolicy === 'Metadata' ? undefined : egressButMetadata(agent, input) }
}

/** Incoming: readers of metrics, and probes. No source listens. */
class AgentNetworkPolicy extends Construct {
  constructor(scope: Construct, agent: Agent, egress: readonly object[] | undefined) {
    super(scope, 'network-policy')
    new ObjectConstruct(this, {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: metadataOf(agent, workloadName(agent)),
      spec: {
        podSelector: { matchLabels: podLabels(agent) },
        policyTypes: egress === undefined ? ['Ingress'] : ['Ingress', 'Egress'],
        ingress: [{ ports: [tcp(agentPort)] }],
        ...(egress === undefined ? {} : { egress }),
      },
    })
  }
}

class AgentMonitor extends Construct {
  constructor(scope: Construct, agent: Agent, { metricsTokenSecret }: WorkloadInput) {
    super(scope, 'monitor')
    const { labels: more, interval = agentDefaults.podMonitor.interval } = agent.spec.monitoring?.podMonitor ?? {}
    const credentials = { name: metricsTokenSecret, key: 'token' }
    const endpoint = {
      port: 'observe',
      path: '/metrics',
      interval,
      // Dashboards choose nodes by it.
      relabelings: [{ sourceLabels: ['__meta_kubernetes_pod_node_name'], targetLabel: 'node' }],
      ...(metricsTokenSecret === undefined ? {} : { authorization: { type: 'Bearer', credentials } }),
    }
    new ObjectConstruct(this, {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PodMonitor',
      metadata: { ...metadataOf(agent, workloadName(agent)), labels: { ...more, ...objectLabels(agent) } },
      spec: { selector: { matchLabels: podLabels(agent) }, podMetricsEndpoints: [endpoint] },
    })
  }
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url)
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}
