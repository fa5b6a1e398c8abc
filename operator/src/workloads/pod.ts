// Shared by the pods of all modes: the agent's container, its volumes and its rights. Secret values reach a pod only through
// mounted Secrets, never through environment or arguments.

import type { Agent, AgentSpec } from '../api/agent.ts'
import {
  agentPort,
  authorityName,
  configSecretName,
  configSlots,
  labels,
  objectLabels,
  paths,
  secretSlots,
  tokenAudience,
  valuesSecretName,
} from './names.ts'

/** The inputs of a workload besides its Agent. */
export interface WorkloadInput {
  /** The image that matches this operator. */
  readonly image: string
  readonly imagePullSecrets?: readonly string[]
  /** Where agents report: `https://penstock-operator.penstock-system.svc:9443`. */
  readonly operatorUrl: string
  readonly operatorNamespace: string
  /** The authority of the operator's certificate, as PEM; without it agents use the system's authorities. */
  readonly operatorAuthority?: string
  /** The NetworkPolicy of Agents without their own setting; none if not given. */
  readonly networkPolicy?: 'Metadata' | 'NoMetadata' | undefined
  /** Ports of the destinations and origins in the bundle, for the NetworkPolicy. */
  readonly egressPorts?: readonly number[]
  /** Ports of the API server, before and after its Service is resolved. */
  readonly apiServerPorts?: readonly number[]
  /** Whether the Agent belongs to a tenant: its account then has no rights outside its namespace. */
  readonly tenant?: boolean
  /** Namespaces watched through Roles: an agent gets its rights in each of them, and requests nothing else. */
  readonly namespaces?: readonly string[]
  /** Whether the cluster serves PodMonitor. */
  readonly podMonitors?: boolean
  /** The Secret in the Agent's namespace whose `token` grants access to `/metrics`. */
  readonly metricsTokenSecret?: string
  /** For Aggregators: the Lease by which replicas elect the one that runs singleton sources. */
  readonly lease?: string | undefined
}

export type ResourceAmounts = NonNullable<AgentSpec['resources']>

/** The user id of agents; their group is root's, which may read the output of containers. */
export const agentUser = 1000

export const restricted = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
} as const

export const podSecurity = (user: number) => ({
  ...(user === 0 ? {} : { runAsNonRoot: true }),
  runAsUser: user,
  runAsGroup: 0,
  seccompProfile: { type: 'RuntimeDefault' },
})

/** The Agent's image, if it sets one, or the one that matches the operator. */
export function imageOf(agent: Agent, input: WorkloadInput): string {
  const { repository, tag, digest } = agent.spec.image ?? {}
  if (!repository && !tag && !digest) return input.image
  const [, paired = input.image] = /^(.*?)(?:[:@](?!.*\/).*)?$/.exec(input.image) ?? []
  const name = repository || paired
  if (digest) return `${name}@${digest}`
  return `${name}:${tag || tagOf(input.image)}`
}

const tagOf = (image: string) => /:([^/:@]+)(?:@|$)/.exec(image)?.[1] ?? 'latest'

export const environment = [
  { name: 'AGENT_SELF_NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
  { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
]

export const bundleArguments = (agent: Agent, input: WorkloadInput) => {
  const { drainSeconds, monitoring } = agent.spec
  const { detail, metricPrefix } = monitoring ?? {}
  return [
    ...['--bundle', paths.bundle, '--secrets', paths.secrets, '--operator', input.operatorUrl],
    ...['--data-dir', paths.data],
    ...(drainSeconds === undefined ? [] : ['--removed-drain-seconds', String(drainSeconds)]),
    ...(detail === undefined ? [] : ['--metrics-detail', detail.toLowerCase()]),
    ...(metricPrefix === undefined ? [] : ['--metric-prefix', metricPrefix]),
  ]
}

/** Arguments for draining the volume of a removed pod: without reports and sources. */
export const drainArguments = [
  ...['--bundle', paths.bundle, '--secrets', paths.secrets, '--data-dir', paths.data, '--drain'],
]
/** The agent exits with it when a buffer belongs to no existing Pipeline. */
export const drainLeftCode = 69

export const livenessProbe = {
  httpGet: { path: '/health', port: 'observe' },
  periodSeconds: 10,
  timeoutSeconds: 5,
  failureThreshold: 6,
}

/** The agent's container without parts of a single mode. */
export function agentContainer(
  agent: Agent,
  input: WorkloadInput,
  args: readonly string[],
  resources: ResourceAmounts,
) {
  const { pullPolicy } = agent.spec.image ?? {}
  return {
    name: 'agent',
    image: imageOf(agent, input),
    ...(pullPolicy === undefined ? {} : { imagePullPolicy: pullPolicy }),
    args: [...bundleArguments(agent, input), ...args],
    env: environment,
    ports: [{ name: 'observe', containerPort: agentPort, protocol: 'TCP' }],
    livenessProbe,
    readinessProbe: { httpGet: { path: '/ready', port: 'observe' }, periodSeconds: 5, timeoutSeconds: 5 },
    resources: agent.spec.resources ?? resources,
    securityContext: restricted,
    volumeMounts: [
      { name: 'bundle', mountPath: paths.bundle, readOnly: true },
      { name: 'secrets', mountPath: paths.secrets, readOnly: true },
      { name: 'operator', mountPath: paths.operator, readOnly: true },
      { name: 'service-account', mountPath: paths.serviceAccount, readOnly: true },
    ],
  }
}

/** The bundle's Secrets. Every slot exists from the start and is optional, so that a new shard changes no pod. */
export function bundleVolumes(agent: Pick<Agent, 'metadata'>, prefix = '') {
  const slots = (count: number, name: (agent: Pick<Agent, 'metadata'>, slot: number) => string) =>
    Array.from({ length: count }, (_, slot) => ({ secret: { name: name(agent, slot), optional: true } }))
  return [
    {
      name: `${prefix}bundle`,
      projected: { defaultMode: 0o440, sources: slots(configSlots, configSecretName) },
    },
    {
      name: `${prefix}secrets`,
      projected: { defaultMode: 0o440, sources: slots(secretSlots, valuesSecretName) },
    },
    {
      name: `${prefix}operator`,
      projected: {
        defaultMode: 0o440,
        sources: [
          { serviceAccountToken: { audience: tokenAudience, expirationSeconds: 3600, path: 'token' } },
          { configMap: { name: authorityName(agent), optional: true } },
        ],
      },
    },
  ]
}

/** The API server's token only for the agent's container: the pod itself mounts none. */
export const serviceAccountVolume = {
  name: 'service-account',
  projected: {
    defaultMode: 0o440,
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
    ],
  },
}

export const pullSecrets = (agent: Agent, input: WorkloadInput) => {
  const names = [...(input.imagePullSecrets ?? []).map((name) => ({ name })), ...(agent.spec.imagePullSecrets ?? [])]
  return names.length === 0 ? {} : { imagePullSecrets: names }
}

export const templateMetadata = (agent: Agent) => ({
  labels: { ...objectLabels(agent), [labels.component]: agent.spec.mode.toLowerCase() },
  annotations: { 'kubectl.kubernetes.io/default-container': 'agent' },
})
