// Names and labels of everything that an Agent owns, and the paths inside its pods. Who writes an object and who mounts it
// read its name here.

import type { Agent } from '../api/agent.ts'
import type { OwnerReference } from '../api/object.ts'
import { apiVersion } from '../api/object.ts'

/** Secrets with the shards of a bundle; all are mounted from the start, so that a further shard changes no pod. */
export const configSlots = 8
/** Secrets with the values that a bundle refers to. */
export const secretSlots = 4

export const fieldManager = 'penstock-operator'

export const labels = {
  managedBy: 'app.kubernetes.io/managed-by',
  name: 'app.kubernetes.io/name',
  instance: 'app.kubernetes.io/instance',
  component: 'app.kubernetes.io/component',
  agent: 'penstock.dev/agent',
  agentNamespace: 'penstock.dev/agent-namespace',
} as const

export const paths = {
  bundle: '/etc/penstock/bundle',
  secrets: '/etc/penstock/secrets',
  /** The token for the operator and the operator's authority. */
  operator: '/var/run/secrets/penstock.dev',
  serviceAccount: '/var/run/secrets/kubernetes.io/serviceaccount',
  data: '/var/lib/penstock',
  logs: '/var/log/pods',
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
/** Of an object without namespace: two Agents of one name in two namespaces must not share it. */
export const clusterName = (agent: Named) => `penstock-agent-${agent.metadata.namespace}-${agent.metadata.name}`

/** What chooses the pods of an Agent; a selector cannot be changed, so nothing else may go in here. */
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

/** Labels of objects without namespace: they have no owner that the garbage collector knows, and are found by these. */
export const clusterLabels = (agent: Named): Record<string, string> => ({
  ...objectLabels(agent),
  [labels.agentNamespace]: agent.metadata.namespace ?? '',
})

export function ownedBy(agent: Named): OwnerReference[] {
  const { name, uid } = agent.metadata
  return uid === undefined ? [] : [{ apiVersion, kind: 'Agent', name, uid, controller: true, blockOwnerDeletion: true }]
}
