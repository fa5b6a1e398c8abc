// Examples of every kind. Together, the examples of a kind contain each field of its spec, so the reference, `explain` and editors can
// show an example of any field. A test checks them against schema and rules, and also compiles the Pipelines.

import type { AgentSpec } from './agent.ts'
import type { PipelineSpec } from './pipeline.ts'
import type { SinkSpec } from './sink.ts'
import type { SourceSpec } from './source.ts'
import type { TenantPolicySpec } from './tenant-policy.ts'

const notSystem = {
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] }],
} as const
const teamShop = { matchLabels: { team: 'shop' }, ...notSystem }
const webPods = {
  matchLabels: { app: 'web' },
  matchExpressions: [{ key: 'track', operator: 'NotIn', values: ['canary'] }],
} as const

/** The start of each group of lines is a date. */
const dated = {
  custom: {
    start: '^\\d{4}-\\d\\d-\\d\\d ',
    condition: '^\\d{4}-\\d\\d-\\d\\d ',
    mode: 'halt_before',
    flush: '^-- end',
    timeoutMs: 1000,
  },
} as const

const loki = {
  endpoint: 'http://loki.monitoring.svc:3100',
  labels: { app: '{{ orchestrator.pod_labels.app }}' },
  encoding: { codec: 'json' },
  out_of_order_action: 'accept',
}

const parsing = [
  {
    name: 'parse',
    type: 'remap',
    inputs: ['pods', 'batch'],
    config: {
      source: 'fields = object(parse_json(.message) ?? {}) ?? {}\n.level = string(fields.level) ?? "info"\n',
    },
  },
  { name: 'keep', type: 'filter', inputs: ['parse'], config: { condition: '.level != "debug"' } },
] as const

const tests: NonNullable<PipelineSpec['tests']> = [
  {
    name: 'debug lines are dropped',
    insertAt: 'parse',
    input: { raw: '{"level":"debug"}' },
    expect: [{ at: 'keep', count: 0 }],
  },
  {
    name: 'a line of text is kept',
    insertAt: 'parse',
    input: { log: { message: 'ready' } },
    expect: [{ at: 'keep', count: 1, assert: '.level == "info"' }],
  },
  {
    name: 'an event of a program is kept',
    insertAt: 'keep',
    input: { program: '.level = "info"' },
    expect: [{ at: 'keep', count: 1 }],
  },
  {
    name: 'two of three lines are kept',
    inputs: [
      { insertAt: 'parse', raw: '{"level":"debug"}' },
      { insertAt: 'parse', log: { message: 'ready' } },
      { insertAt: 'parse', program: '.message = "ready"' },
    ],
    expect: [{ at: 'keep', count: 2 }],
  },
]

const reading = {
  mode: 'Auto',
  suspend: false,
  limits: {
    perContainer: { linesPerSecond: 100, bytesPerSecond: '256Ki', onLimit: 'Drop' },
    pipeline: { bytesPerSecond: '5Mi', onLimit: 'Lag' },
  },
  onError: { deadLetter: { sink: 'dead-letters', maxEventsPerSecond: 10 } },
} as const

const deadLetters = { name: 'dead-letters', type: 'log_aggregator', inputs: [], config: loki }

const pipeline: PipelineSpec = {
  ...reading,
  secrets: [{ alias: 'search', secretName: 'search-writer' }],
  sources: [
    {
      name: 'pods',
      type: 'orchestrator_logs',
      config: { metadata: 'lean' },
      selector: { pods: webPods, containers: { exclude: ['proxy'] }, optIn: false },
      multiline: { preset: 'java' },
    },
    { name: 'batch', type: 'orchestrator_logs', multiline: dated },
    { name: 'shared', ref: { kind: 'Source', name: 'shop-pods' } },
  ],
  transforms: parsing,
  sinks: [
    {
      name: 'search',
      type: 'search_engine',
      inputs: ['keep'],
      config: {
        endpoints: ['http://search.shop.svc:9200'],
        auth: { strategy: 'basic', user: 'SECRET[search.user]', password: 'SECRET[search.password]' },
      },
    },
    {
      name: 'loki',
      inputs: ['keep', 'shared'],
      ref: { kind: 'ClusterSink', name: 'loki' },
      overrides: { labels: { team: 'shop' } },
    },
    deadLetters,
  ],
  tests,
}

const clusterPipeline: PipelineSpec = {
  ...pipeline,
  secrets: [{ alias: 'search', secretName: 'search-writer', namespace: 'penstock-system' }],
  sources: [
    {
      name: 'pods',
      type: 'orchestrator_logs',
      config: { metadata: 'lean' },
      selector: { pods: webPods, namespaces: teamShop, containers: { exclude: ['proxy'] }, optIn: false },
      multiline: { preset: 'java' },
    },
    { name: 'batch', type: 'orchestrator_logs', multiline: dated },
    { name: 'shared', ref: { kind: 'ClusterSource', name: 'all-pods' } },
  ],
}

const sources = (cluster: boolean): readonly SourceSpec[] => [
  {
    type: 'orchestrator_logs',
    config: { metadata: 'lean' },
    selector: {
      pods: webPods,
      ...(cluster ? { namespaces: teamShop } : {}),
      containers: { exclude: ['proxy'] },
      optIn: false,
    },
    multiline: { preset: 'java' },
    ...(cluster ? { allowedNamespaces: { from: 'Selector', selector: teamShop }, allowedAgents: 'Platform' } : {}),
  },
  { type: 'orchestrator_logs', multiline: dated },
]

const clusterSink: SinkSpec = {
  type: 'log_aggregator',
  config: loki,
  allowedNamespaces: { from: 'Selector', selector: teamShop },
  allowedAgents: 'Platform',
  overridable: ['labels'],
  enforced: { tenant_id: '{{ orchestrator.pod_namespace }}' },
  limits: { perNamespace: { bytesPerSecond: '5Mi' } },
}

const ofAgent = {
  managementState: 'Managed',
  pipelines: {
    namespaceSelector: teamShop,
    selector: {
      matchLabels: { tier: 'web' },
      matchExpressions: [{ key: 'draft', operator: 'DoesNotExist', values: [] }],
    },
    clusterPipelines: {
      selector: {
        matchLabels: { tier: 'platform' },
        matchExpressions: [{ key: 'draft', operator: 'DoesNotExist', values: [] }],
      },
    },
  },
  image: {
    repository: 'registry.example.com/penstock/agent',
    tag: '0.1.0',
    digest: `sha256:${'0123456789abcdef'.repeat(4)}`,
    pullPolicy: 'IfNotPresent',
  },
  imagePullSecrets: [{ name: 'registry' }],
  resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } },
  configDelivery: 'Stream',
  drainSeconds: 60,
  rollout: {
    canary: { percent: 5, minNodes: 1, bake: '60s' },
    step: { percent: 25, bake: '30s' },
    maxFailedPercent: 2,
    autoRollback: true,
    paused: false,
  },
  monitoring: {
    podMonitor: { enabled: true, labels: { release: 'prometheus' }, interval: '30s' },
    detail: 'Container',
    metricPrefix: 'penstock_',
  },
  networkPolicy: { mode: 'Generated' },
  podTemplate: { metadata: { labels: { team: 'platform' } } },
} as const

const toleration = { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' }

const agents: readonly AgentSpec[] = [
  {
    mode: 'Node',
    ...ofAgent,
    node: {
      updateStrategy: { maxUnavailable: '10%' },
      priorityClassName: 'system-node-critical',
      tolerations: [toleration],
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      dataDir: { hostPath: '/var/lib/penstock', diskBudget: '20Gi' },
      metadata: { source: 'Auto' },
      logPaths: { pods: '/var/log/pods', extraReadOnly: ['/var/log/audit'] },
      maxOpenRotatedFilesPerContainer: 5,
      runAsRoot: false,
    },
  },
  {
    mode: 'Aggregator',
    aggregator: {
      workload: 'StatefulSet',
      autoscaling: { minReplicas: 2, maxReplicas: 6, targetCPU: 70, targetBufferUtilization: 60 },
      storage: {
        size: '20Gi',
        storageClassName: 'standard',
        retention: { whenScaled: 'Drain', whenDeleted: 'Retain' },
      },
      podDisruptionBudget: { maxUnavailable: 1 },
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
      ],
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [toleration],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'pool', operator: 'In', values: ['logs'] }] }],
          },
        },
      },
      service: { trafficDistribution: 'PreferSameZone' },
    },
  },
  {
    mode: 'Aggregator',
    aggregator: { workload: 'Deployment', replicas: 2, podDisruptionBudget: { minAvailable: '50%' } },
  },
  { mode: 'Sidecar', sidecar: { volumePolicy: 'EmptyDirOnly', drainSeconds: 20 } },
]

const tenantPolicy: TenantPolicySpec = {
  namespaceSelector: teamShop,
  allowedSources: ['orchestrator_logs'],
  allowedSinks: ['log_aggregator', 'search_engine'],
  denyOptions: ['sinks.*.proxy'],
  egress: { denyCIDRs: ['192.168.0.0/16'], allowHosts: ['*.shop.svc', 'logs.example.com'] },
  implicitCredentials: 'Deny',
  maxReadBytes: '1Mi',
  limits: {
    lineBytes: '1Mi',
    mergedLineBytes: '4Mi',
    frameBytes: '4Mi',
    fingerprintLines: 100,
    keptMilliseconds: 60_000,
    prefetched: 1000,
    pollers: 4,
    bufferEvents: 10_000,
    pipelineBufferEvents: 20_000,
    bufferBytes: '2Gi',
    batchBytes: '10Mi',
    batchEvents: 10_000,
    concurrency: 50,
  },
  programBudget: { turnsPerEvent: 100_000, bytesPerEvent: '16Mi' },
  quota: { pipelines: 20, components: 200, diskBuffer: '2Gi', bytesPerSecond: '50Mi', cpuShare: 50 },
  gracePeriod: '1h',
  tests: { required: true },
}

export interface Example {
  readonly name: string
  readonly spec: object
}

/** By kind. */
export const examples: Readonly<Record<string, readonly Example[]>> = {
  Pipeline: [{ name: 'web', spec: pipeline }],
  ClusterPipeline: [{ name: 'all-web', spec: clusterPipeline }],
  Source: named(['shop-pods', 'shop-groups'], sources(false)),
  ClusterSource: named(['all-pods', 'all-groups'], sources(true)),
  Sink: [{ name: 'loki', spec: { type: 'log_aggregator', config: loki } satisfies SinkSpec }],
  ClusterSink: [{ name: 'loki', spec: clusterSink }],
  Agent: named(['node', 'stateful', 'hub', 'sidecar'], agents),
  TenantPolicy: [{ name: 'shops', spec: tenantPolicy }],
}

function named(names: readonly string[], specs: readonly object[]): readonly Example[] {
  return specs.map((spec, index) => ({ name: names[index] ?? `${names[0]}-${index}`, spec }))
}

/**
 * The value of a field in the first example that has it. @param words such as `spec`, `sources`, `name`; lists are
 * searched item by item, and map keys are `*`
 */
export function exampleOf(kind: string, words: readonly string[]): unknown {
  for (const { spec } of examples[kind] ?? []) {
    const found = valueAt({ spec }, words)
    if (found !== undefined) return found
  }
  return undefined
}

function valueAt(value: unknown, words: readonly string[]): unknown {
  if (words.length === 0 || value === undefined) return value
  if (Array.isArray(value)) {
    for (const item of value) {
      const found = valueAt(item, words)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const [word, ...rest] = words as [string, ...string[]]
  const members = value as Readonly<Record<string, unknown>>
  return valueAt(word === '*' ? Object.values(members)[0] : members[word], rest)
}
