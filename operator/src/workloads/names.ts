// Names and labels of everything that an Agent owns, and the paths inside its pods. Writers of an object, and pods that
// mount it, both get its name here.

import { createHash } from 'node:crypto'
import { type Agent, agentDefaults } from '../api/agent.ts'
import type { KubeObject, OwnerReference } from '../api/object.ts'
import { apiVersion } from '../api/object.ts'

/** Secrets with the shards of a bundle; all are mounted from the start, so that a new shard changes no pod. */
export const configSlots = 8
/** Secrets with the values that a bundle refers to. */
export const secretSlots = 4

/**
 * Leases by which the replicas of an Aggregator elect a leader. Their names are fixed, and so is the agents' role: it covers exactly
 * these Leases of a namespace.
 */
export const leaseNames: readonly string[] = Array.from({ length: 64 }, (_, slot) => `penstock-aggregator-${slot}`)

export const labels = {
  managedBy: 'app.kubernetes.io/managed-by',
  name: 'app.kubernetes.io/name',
  instance: 'app.kubernetes.io/instance',
  component: 'app.kubernetes.io/component',
  agent: 'penstock.dev/agent',
  agentNamespace: 'penstock.dev/agent-namespace',
  /** Logs of pods with the value `true` are not read. */
  exclude: 'penstock.dev/exclude',
} as const

export const paths = {
  bundle: '/etc/penstock/bundle',
  secrets: '/etc/penstock/secrets',
  /** The token for the operator, and the operator's certificate authority. */
  operator: '/var/run/secrets/penstock.dev',
  serviceAccount: '/var/run/secrets/kubernetes.io/serviceaccount',
  data: agentDefaults.node.dataDir,
  logs: agentDefaults.node.logs,
} as const

/** The observation server of an agent. */
export const agentPort = 8686
export const kubeletPort = 10250
export const tokenAudience = 'penstock-operator'

type Named = Pick<Agent, 'metadata'>

/** `penstock-node`: the workload, its ServiceAccount, and the beginning of every other name. */
export const workloadName = (agent: Named) => `penstock-${agent.metadata.name}`
export const configSecretName = (agent: Named, slot: number) => `${workloadName(agent)}-cfg-${slot}`
export const valuesSecretName = (agent: Named, slot: number) => `${workloadName(agent)}-sec-${slot}`
/** Pods and volumes of a StatefulSet; its claim template is called `data`. */
export const podName = (agent: Named, ordinal: number) => `${workloadName(agent)}-${ordinal}`
export const claimName = (agent: Named, ordinal: number) => `data-${podName(agent, ordinal)}`
export function claimOrdinal(agent: Named, claim: string): number | undefined {
  const ordinal = claim.slice(claimName(agent, 0).length - 1)
  return /^\d+$/.test(ordinal) && claim === claimName(agent, Number(ordinal)) ? Number(ordinal) : undefined
}
export const drainJobName = (agent: Named, ordinal: number) => `${workloadName(agent)}-drain-${ordinal}`
export const authorityName = (agent: Named) => `${workloadName(agent)}-ca`
/**
 * The Lease of an Aggregator: the one derived from its name, or the next one not used by an older Aggregator of the namespace.
 * Undefined if all are used.
 */
export function leaseName(agent: Named, agents: Iterable<Agent>): string | undefined {
  const { namespace, name } = agent.metadata
  const ofNamespace = [...agents].filter(
    (one) => one.spec.mode === 'Aggregator' && one.metadata.namespace === namespace,
  )
  const age = ({ metadata }: Named) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`
  const taken = new Set<string>()
  for (const one of ofNamespace.toSorted((left, right) => (age(left) < age(right) ? -1 : 1))) {
    const first = createHash('sha256').update(one.metadata.name).digest().readUInt32BE(0) % leaseNames.length
    const free = [...leaseNames.slice(first), ...leaseNames.slice(0, first)].find((lease) => !taken.has(lease))
    if (one.metadata.name === name) return free
    if (free !== undefined) taken.add(free)
  }
  return undefined
}

/**
 * Name of an Agent's binding in another namespace: it contains a digest, because no separator is left that object names allow but names
 * of namespaces and Agents do not.
 */
export const bindingName = ({ metadata: { namespace, name } }: Named) =>
  `penstock-agent-${createHash('sha256').update(`${namespace}/${name}`).digest('hex').slice(0, 32)}`

/** The folder of a Node Agent on its nodes. */
export const dataFolder = ({ metadata: { namespace, name }, spec }: Pick<Agent, 'metadata' | 'spec'>) =>
  `${(spec.node?.dataDir?.hostPath ?? paths.data).replace(/\/+$/, '')}/${namespace}-${name}`

/** An older Node Agent with the same folder as this one. The names `a-b/c` and `a/b-c` lead to the same folder. */
export function sharesDataFolder(agent: Agent, agents: Iterable<Agent>): Agent | undefined {
  if (agent.spec.mode !== 'Node') return undefined
  const age = ({ metadata }: Named) => `${metadata.creationTimestamp ?? ''} ${metadata.namespace}/${metadata.name}`
  const folder = dataFolder(agent)
  return [...agents].find((one) => one.spec.mode === 'Node' && age(one) < age(agent) && dataFolder(one) === folder)
}

/** The maximum length of an Agent's name, and the reason: labels and names of 63 characters contain it. */
export function maxNameLength({ spec }: Pick<Agent, 'spec'>): { readonly length: number; readonly why: string } {
  if (spec.mode !== 'Aggregator') return { length: 63, why: 'it is the value of a label' }
  if (spec.aggregator?.storage === undefined)
    return { length: 63 - 'penstock-'.length, why: 'a Service is named after it' }
  const revision = '-0123456789'
  return { length: 63 - `penstock-${revision}`.length, why: 'a label of the StatefulSet contains it' }
}

/** The selector of an Agent's pods; selectors cannot be changed, so it contains nothing else. */
export const podLabels = (agent: Named): Record<string, string> => ({
  [labels.name]: 'penstock-agent',
  [labels.instance]: agent.metadata.name,
})

/** Labels of every object of an Agent. */
export const objectLabels = (agent: Named): Record<string, string> => ({
  ...podLabels(agent),
  [labels.managedBy]: 'penstock',
  [labels.agent]: agent.metadata.name,
})

/** Labels of an Agent's objects in other namespaces, which it cannot own: these labels identify them. */
export const awayLabels = (agent: Named): Record<string, string> => ({
  ...objectLabels(agent),
  [labels.agentNamespace]: agent.metadata.namespace ?? '',
})

/** Labels of objects shared by all Agents, which are watched together with the objects of each. */
export const sharedLabels: Readonly<Record<string, string>> = { [labels.managedBy]: 'penstock', [labels.agent]: '' }

/**
 * Whether the operator has created an object for an Agent: it has the labels, and no other controller. The operator neither changes nor
 * deletes other objects, even with such names.
 */
export function isOwn(agent: Named, { metadata }: KubeObject): boolean {
  const { namespace, name } = agent.metadata
  const own = metadata.labels ?? {}
  if (own[labels.managedBy] !== 'penstock' || own[labels.agent] !== name) return false
  if ((own[labels.agentNamespace] ?? metadata.namespace) !== namespace) return false
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true)
  return controller === undefined || (controller.kind === 'Agent' && controller.name === name)
}

/** An object of another owner has a name that we need. */
export class ForeignObjectError extends Error {
  constructor(kind: string, { metadata: { namespace, name, labels: own } }: KubeObject) {
    const where = namespace === undefined ? name : `${namespace}/${name}`
    const whose = own?.[labels.managedBy] === undefined ? '' : ` (it is managed by "${own[labels.managedBy]}")`
    super(
      `${kind} ${where} exists but does not belong to Penstock${whose}, so the operator does not change it. Delete or rename it, or choose another name for the Agent.`,
    )
  }
}

export function ownedBy(agent: Named): OwnerReference[] {
  const { name, uid } = agent.metadata
  return uid === undefined ? [] : [{ apiVersion, kind: 'Agent', name, uid, controller: true, blockOwnerDeletion: true }]
}
