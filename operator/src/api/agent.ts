// Agent: a workload that runs Pipelines on every node, as an aggregator, or as a sidecar in a pod.

import { conditionOf, conditions } from './conditions.ts'
import type { CustomResource } from './object.ts'
import {
  bool,
  byDefault,
  duration,
  integer,
  intOrPercent,
  list,
  map,
  object,
  oneOf,
  open,
  required,
  specQuantity,
  text,
  time,
  type ValueOf,
} from './schema.ts'
import { labelSelector, selects } from './selector.ts'

const quantities = map(
  specQuantity(
    'An amount.',
    'Until it is corrected, the API server refuses changes to the workload; its pods keep running.',
  ),
  'Amounts by resource, such as cpu and memory.',
)
const noBuffers =
  'Until it is corrected, it counts as 0: the operator rejects new versions of Pipelines with disk buffers.'

/** If an Agent does not set a budget: the disk space of a node that namespaced Pipelines may use. */
export const defaultDiskBudget = '10Gi'

/** Defaults for the fields that an Agent omits. */
export const agentDefaults = {
  configDelivery: 'Stream',
  drainSeconds: 60,
  node: {
    maxUnavailable: '10%',
    priorityClassName: 'system-node-critical',
    dataDir: '/var/lib/penstock',
    logs: '/var/log/pods',
  },
  aggregator: { replicas: 1, minReplicas: 1, targetCPU: 75, retention: 'Retain', maxUnavailable: 1 },
  sidecar: { drainSeconds: 20 },
  rollout: {
    canary: { percent: 5, minNodes: 1, bake: '60s' },
    step: { percent: 25, bake: '30s' },
    maxFailedPercent: 2,
    autoRollback: true,
    paused: false,
  },
  podMonitor: { interval: '30s' },
} as const

export const agentSpec = object(
  {
    mode: required(
      oneOf(['Node', 'Aggregator', 'Sidecar'], 'Kind of the workload.', {
        rules: [{ rule: 'self == oldSelf', message: 'mode cannot be changed' }],
      }),
    ),
    managementState: byDefault(
      'Managed',
      oneOf(['Managed', 'Unmanaged'], "With Unmanaged, the operator changes none of the Agent's objects."),
    ),
    pipelines: object(
      {
        namespaceSelector: labelSelector(
          'Namespaces whose Pipelines it runs; none if absent, all if empty. A sidecar only runs the Pipelines of its own namespace, even if this field is absent.',
        ),
        selector: labelSelector('Labels of the Pipelines; all if absent.'),
        clusterPipelines: object(
          { selector: labelSelector('Labels of the ClusterPipelines.') },
          'ClusterPipelines that it runs; none if absent.',
        ),
      },
      'The Pipelines that the Agent runs.',
    ),
    image: object(
      {
        repository: text('Repository.'),
        tag: text('Tag.'),
        digest: text('Digest.'),
        pullPolicy: oneOf(['Always', 'IfNotPresent', 'Never'], 'When to pull.'),
      },
      'The image; empty: the one that belongs to the operator.',
    ),
    imagePullSecrets: list(
      object({ name: required(text('Name of the Secret.')) }, 'A Secret.'),
      'Secrets for pulling.',
    ),
    resources: object({ requests: quantities, limits: quantities }, 'Resources of the container.'),
    configDelivery: byDefault(
      agentDefaults.configDelivery,
      oneOf(
        ['Mounted', 'Stream'],
        "How agents receive their configuration: from mounted Secrets, within about a minute, or from the operator, within seconds; the operator sends a node's agent only what concerns that node. Stream if not set. The Secrets are always mounted, so that agents can start while the operator is unavailable.",
      ),
    ),
    drainSeconds: byDefault(
      agentDefaults.drainSeconds,
      integer('How long sinks of removed Pipelines may deliver pending events; 60 if not set.'),
    ),
    node: object(
      {
        updateStrategy: object(
          { maxUnavailable: byDefault(agentDefaults.node.maxUnavailable, intOrPercent('Pods that may be down.')) },
          'How pods are replaced.',
        ),
        priorityClassName: byDefault(agentDefaults.node.priorityClassName, text('Priority of the pods.')),
        tolerations: list(open('A toleration.'), 'Taints that are tolerated.'),
        nodeSelector: map(text('Value of the label.'), 'Labels of the nodes.'),
        dataDir: object(
          {
            hostPath: byDefault(agentDefaults.node.dataDir, text('Folder on the node.')),
            diskBudget: specQuantity(
              `Bytes for disk buffers of all Pipelines; if not set, namespaced Pipelines together may use ${defaultDiskBudget}.`,
              noBuffers,
            ),
          },
          'State on the node.',
        ),
        metadata: object(
          {
            source: byDefault(
              'Auto',
              oneOf(
                ['Auto', 'APIServer', 'Kubelet'],
                'Origin of the pods of a node: `Kubelet`, with the API server as a fallback, or `APIServer`. `Auto` uses the API server.',
              ),
            ),
          },
          'Pod metadata.',
        ),
        logPaths: object(
          {
            pods: byDefault(agentDefaults.node.logs, text('Folder of pod logs.')),
            extraReadOnly: list(text('A folder.'), 'Additional folders, for ClusterPipelines.'),
          },
          'Folders on the node.',
        ),
        maxOpenRotatedFilesPerContainer: integer(
          'Maximum number of unread rotated files of a container; beyond it, the agent gives up the oldest one. No limit if not set.',
          { minimum: 1 },
        ),
        runAsRoot: byDefault(false, bool('For nodes whose log files only root can read.')),
      },
      'For mode Node.',
    ),
    aggregator: object(
      {
        workload: oneOf(['Deployment', 'StatefulSet'], 'StatefulSet needs storage.'),
        replicas: byDefault(
          agentDefaults.aggregator.replicas,
          integer('Number of pods. 0: none.', { format: 'int32' }),
        ),
        autoscaling: object(
          {
            minReplicas: byDefault(
              agentDefaults.aggregator.minReplicas,
              integer('Minimum number of pods.', { minimum: 1 }),
            ),
            maxReplicas: required(integer('Maximum number of pods.', { minimum: 1 })),
            targetCPU: byDefault(
              agentDefaults.aggregator.targetCPU,
              integer('Percent of the requested CPU.', { minimum: 1 }),
            ),
            targetBufferUtilization: integer('Percent of the buffers.', { minimum: 1, maximum: 100 }),
          },
          'Number of pods by load.',
        ),
        storage: object(
          {
            size: required(specQuantity('Bytes.', noBuffers)),
            storageClassName: text('Class of the volumes.'),
            retention: object(
              {
                whenScaled: byDefault(
                  agentDefaults.aggregator.retention,
                  oneOf(
                    ['Retain', 'Delete', 'Drain'],
                    'Handling of the volume of a removed pod. Drain: a Job delivers the content of its buffers, then the volume is deleted.',
                  ),
                ),
                whenDeleted: byDefault(
                  agentDefaults.aggregator.retention,
                  oneOf(['Retain', 'Delete'], 'Handling of the volumes of a removed Agent.'),
                ),
              },
              'Retention of volumes.',
            ),
          },
          'A volume for each pod.',
        ),
        podDisruptionBudget: object(
          {
            maxUnavailable: byDefault(agentDefaults.aggregator.maxUnavailable, intOrPercent('Pods that may be down.')),
            minAvailable: intOrPercent('Pods that must be up.'),
          },
          'Voluntary disruptions.',
        ),
        topologySpreadConstraints: list(open('A constraint.'), 'How pods spread.'),
        nodeSelector: map(text('Value of the label.'), 'Labels of the nodes.'),
        tolerations: list(open('A toleration.'), 'Taints that are tolerated.'),
        affinity: open('Affinity of the pods.'),
        service: object(
          {
            trafficDistribution: oneOf(['PreferSameZone', 'PreferClose', 'PreferSameNode'], 'Which pods get traffic.'),
          },
          'Services of listening sources.',
        ),
      },
      'For mode Aggregator.',
      {
        rules: [
          { rule: '!has(self.replicas) || !has(self.autoscaling)', message: 'set either replicas or autoscaling' },
          {
            rule: "!has(self.workload) || (self.workload == 'StatefulSet') == has(self.storage)",
            message: 'a StatefulSet needs storage, a Deployment has none',
          },
        ],
      },
    ),
    sidecar: object(
      {
        volumePolicy: byDefault('EmptyDirOnly', oneOf(['EmptyDirOnly'], 'Volumes that it may read.')),
        drainSeconds: byDefault(
          agentDefaults.sidecar.drainSeconds,
          integer('Seconds to deliver pending events when the pod stops.'),
        ),
      },
      'For mode Sidecar.',
    ),
    rollout: object(
      {
        canary: object(
          {
            percent: byDefault(
              agentDefaults.rollout.canary.percent,
              integer('Percentage of the agents that receive a new revision first.', { maximum: 100 }),
            ),
            minNodes: byDefault(
              agentDefaults.rollout.canary.minNodes,
              integer('Minimum number of agents that receive a new revision first; never fewer than one.'),
            ),
            bake: byDefault(agentDefaults.rollout.canary.bake, duration('How long they are watched.')),
          },
          'The first step.',
          { nullable: true },
        ),
        step: object(
          {
            percent: byDefault(
              agentDefaults.rollout.step.percent,
              integer('Percent of each further step.', { minimum: 1, maximum: 100 }),
            ),
            bake: byDefault(agentDefaults.rollout.step.bake, duration('Time between steps.')),
          },
          'The further steps.',
        ),
        maxFailedPercent: byDefault(
          agentDefaults.rollout.maxFailedPercent,
          integer('Percent of agents that may fail.', { maximum: 100 }),
        ),
        autoRollback: byDefault(agentDefaults.rollout.autoRollback, bool('Whether to roll back a failed revision.')),
        paused: byDefault(agentDefaults.rollout.paused, bool('Whether steps wait.')),
      },
      'How a new configuration reaches the agents.',
    ),
    monitoring: object(
      {
        podMonitor: object(
          {
            enabled: byDefault(true, bool('Whether to create one.')),
            labels: map(text('Value.'), 'Labels of it.'),
            interval: byDefault(agentDefaults.podMonitor.interval, duration('Time between scrapes.')),
          },
          'A PodMonitor.',
        ),
        detail: byDefault(
          'Container',
          oneOf(
            ['Pipeline', 'Component', 'Container'],
            'Granularity of the metrics: one series for each Pipeline, for each component, or for each component and file, container and address (the default).',
          ),
        ),
        metricPrefix: text(
          "Prefix of the agents' metric names, such as `penstock_`. Set it in the chart values as well, for alerts and dashboards.",
          {
            pattern: '^[a-zA-Z_:][a-zA-Z0-9_:]*$',
            'x-expected': 'letters, digits, `_` and `:`, without a digit at the start',
            maxLength: 63,
          },
        ),
      },
      'Metrics.',
    ),
    networkPolicy: object(
      {
        mode: oneOf(
          ['None', 'Generated'],
          "Whether to create one. Without it, the policy of the operator's `--network-policies` applies, which allows all egress except to the metadata services of clouds.",
        ),
      },
      'A NetworkPolicy.',
    ),
    podTemplate: open('A strategic merge patch for the pod template, applied last.'),
  },
  'The workload.',
  {
    rules: [
      { rule: "!has(self.node) || self.mode == 'Node'", message: 'node is for mode Node' },
      { rule: "!has(self.aggregator) || self.mode == 'Aggregator'", message: 'aggregator is for mode Aggregator' },
      { rule: "!has(self.sidecar) || self.mode == 'Sidecar'", message: 'sidecar is for mode Sidecar' },
    ],
  },
)

export const agentStatus = object(
  {
    observedGeneration: integer('The newest generation that the operator has processed.'),
    revision: text('Revision of the current rollout.'),
    stableRevision: text('Revision that is rolled out.'),
    replicas: integer('Pods of an aggregator.', { format: 'int32' }),
    selector: text('Selector of its pods.'),
    pipelines: object(
      {
        selected: integer('Pipelines that it selects.'),
        accepted: integer('Of these, accepted ones.'),
        programmed: integer('Of these, running ones.'),
      },
      'Pipelines.',
    ),
    nodes: object(
      {
        desired: integer('Desired number of agents.'),
        ready: integer('Agents that are ready.'),
        current: integer('Agents with the newest revision.'),
        failed: integer('Agents that could not load it.'),
        stale: integer('Number of agents that have stopped reporting.'),
        streamed: integer('Number of agents that receive their configuration from the operator.'),
      },
      'Agents.',
    ),
    unsupportedNodes: integer('Number of nodes that do not run Linux and therefore have no agent.'),
    bundle: object(
      {
        rawBytes: integer('Bytes of the configuration.'),
        compressedBytes: integer('Bytes as stored.'),
        shards: integer('Number of its Secrets.'),
      },
      'The rendered configuration.',
    ),
    sidecars: object(
      {
        pods: integer('Pods with a sidecar.'),
        current: integer('Up to date.'),
        stale: integer('Silent.'),
        streamed: integer('Number of agents that receive their configuration from the operator.'),
      },
      'Sidecars.',
    ),
    history: list(
      object(
        {
          revision: required(text('Revision.')),
          at: time('When it became stable.'),
          result: text('Result of its rollout.'),
        },
        'A revision.',
      ),
      'The last revisions.',
      { maxItems: 10 },
    ),
    summary: object({ nodes: text('Up-to-date agents out of the desired ones: 40/40.') }, 'Columns of `kubectl get`.'),
    conditions,
  },
  'Observed state of the Agent.',
)

export type AgentSpec = ValueOf<typeof agentSpec>
export type AgentStatus = ValueOf<typeof agentStatus>
export type Agent = CustomResource<AgentSpec, AgentStatus>
export type AgentMode = AgentSpec['mode']

/** How the agents of an Agent receive their configuration. */
export const deliveryOf = ({ configDelivery = agentDefaults.configDelivery }: AgentSpec) => configDelivery

/** The platform's namespaces: the operator's own, and those of `--agent-namespaces`. */
export interface Platform {
  readonly namespace: string
  readonly agentNamespaces: readonly string[]
}

/**
 * Whether an Agent is in a namespace whose editors do not belong to the platform. They can read everything that the
 * Agent receives.
 */
export function isTenants(
  { metadata }: Pick<Agent, 'metadata'>,
  { namespace: own, agentNamespaces }: Platform,
): boolean {
  const { namespace = '' } = metadata
  return namespace !== own && !agentNamespaces.includes(namespace)
}

/** A value of a Pipeline that consists of text and of keys of Secrets and ConfigMaps. */
export interface CarriedValue {
  readonly key: string
  readonly parts: readonly (string | { readonly kind: string; readonly namespace: string; readonly name: string })[]
}

/** For callers that do not know the operator's flags: the namespaces where the operator accepts Node Agents. */
export function platformSeen(agents: Iterable<Agent>): Platform {
  const accepted = [...agents].filter(
    ({ spec, status }) => spec.mode === 'Node' && conditionOf(status?.conditions, 'Accepted')?.status !== 'False',
  )
  return { namespace: '', agentNamespaces: accepted.map(({ metadata }) => metadata.namespace ?? '') }
}

/** The input for an Agent's selection of Pipelines, and the content that it would receive with one. */
export interface Selectable {
  readonly mode: AgentMode
  /** Undefined for a ClusterPipeline. */
  readonly namespace: string | undefined
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly secretRefs?: readonly CarriedValue[] | undefined
  readonly lent?: readonly string[] | undefined
  readonly withheld?: readonly string[] | undefined
}

/** Whether an Agent runs a Pipeline: it selects the Pipeline and may receive all of its content. */
export function takes(
  agent: Pick<Agent, 'metadata' | 'spec'>,
  pipeline: Selectable,
  namespaceLabels: Readonly<Record<string, string>> | undefined,
  platform: Platform,
): boolean {
  return (
    selectsPipeline(agent, pipeline, namespaceLabels, platform) && refusalOf(agent, pipeline, platform) === undefined
  )
}

/**
 * Whether an Agent selects a Pipeline. A sidecar selects only Pipelines of its namespace, and all of them if it names
 * no namespaces.
 */
export function selectsPipeline(
  { metadata, spec: { mode, pipelines = {} } }: Pick<Agent, 'metadata' | 'spec'>,
  pipeline: Selectable,
  namespaceLabels: Readonly<Record<string, string>> | undefined,
  { agentNamespaces }: Platform,
): boolean {
  if (pipeline.mode !== mode) return false
  if (mode === 'Node' && !agentNamespaces.includes(metadata.namespace ?? '')) return false
  if (pipeline.namespace === undefined) return selects(pipelines.clusterPipelines?.selector, pipeline.labels)
  if (mode === 'Sidecar' && pipeline.namespace !== metadata.namespace) return false
  const open = mode === 'Sidecar' && pipelines.namespaceSelector === undefined
  if (!open && !selects(pipelines.namespaceSelector, namespaceLabels)) return false
  return pipelines.selector === undefined || selects(pipelines.selector, pipeline.labels)
}

/**
 * Why an Agent may not receive a Pipeline's content; undefined if it may. Outside the platform, an Agent receives only content of its own
 * namespace.
 */
export function refusalOf(
  agent: Pick<Agent, 'metadata'>,
  { namespace, secretRefs = [], lent = [], withheld = [] }: Omit<Selectable, 'mode' | 'labels'>,
  platform: Platform,
): string | undefined {
  if (!isTenants(agent, platform)) return undefined
  const own = agent.metadata.namespace
  if (namespace === undefined) return 'it is a ClusterPipeline'
  if (namespace !== own) return `it belongs to namespace "${namespace}"`
  for (const { key, parts } of secretRefs) {
    if (lent.includes(key)) continue
    for (const part of parts) {
      if (typeof part === 'string' || part.namespace === own) continue
      return `it needs ${part.kind} "${part.name}" of namespace "${part.namespace}", whose values would be copied to namespace "${own}"`
    }
  }
  const [plain] = withheld
  return plain === undefined
    ? undefined
    : `it refers to ${plain}, which contains a secret that would be copied to namespace "${own}"`
}

/** The setting that resolves a refusal by `refusalOf`. */
export function remedyOf(
  { secretRefs = [], withheld = [], namespace }: Omit<Selectable, 'mode' | 'labels'>,
  agent: Pick<Agent, 'metadata'>,
): string {
  const carriesOthers = secretRefs.length > 0 || withheld.length > 0
  const own = agent.metadata.namespace
  return namespace === own && carriesOthers
    ? 'Run it with an Agent of the platform, or have the owner of the ClusterSink or ClusterSource set `allowedAgents: Tenant`.'
    : `Create the Agent in a namespace of the platform, or add "${own}" to --agent-namespaces.`
}

/** A setting that an Agent may not have. */
export interface Misfit {
  readonly path: string
  readonly message: string
  readonly help: string
}

/** An Agent of mode Node in a namespace that does not allow this mode. */
export function misplacementOf(
  { metadata: { namespace = '' }, spec: { mode } }: Pick<Agent, 'metadata' | 'spec'>,
  { agentNamespaces }: Platform,
): Misfit | undefined {
  if (mode !== 'Node' || agentNamespaces.includes(namespace)) return undefined
  const message = `Agents of mode Node are accepted only in these namespaces: ${agentNamespaces.join(', ')}; found "${namespace}"`
  return { path: 'mode', message, help: `Set --agent-namespaces to allow "${namespace}".` }
}

/**
 * The problem of an Agent outside the platform that requests more than such Agents get; undefined if it gets everything. `others` are
 * the labels of the other namespaces.
 */
export function excessOf(
  agent: Pick<Agent, 'metadata' | 'spec'>,
  others: Iterable<Readonly<Record<string, string>> | undefined>,
  platform: Platform,
): Misfit | undefined {
  if (!isTenants(agent, platform)) return undefined
  const { namespace } = agent.metadata
  const { mode, pipelines = {} } = agent.spec
  const allowed = [...new Set([platform.namespace, ...platform.agentNamespaces])].sort().join(', ')
  const help = `It receives only Pipelines of namespace "${namespace}". Agents of these namespaces may receive others: ${allowed}. Create it there, or add "${namespace}" to --agent-namespaces (value \`agentNamespaces\` of the chart).`
  if (pipelines.clusterPipelines !== undefined) {
    const path = 'pipelines.clusterPipelines'
    return { path, message: `\`spec.${path}\` has no effect in namespace "${namespace}"`, help }
  }
  if (mode !== 'Aggregator') return undefined
  for (const labels of others) {
    if (!selects(pipelines.namespaceSelector, labels)) continue
    const path = 'pipelines.namespaceSelector'
    return { path, message: `\`spec.${path}\` selects namespaces other than "${namespace}"`, help }
  }
  return undefined
}
