// The context of every part of the operator: the client, the shared caches, the compiled Pipelines, and the way to report findings.
// cli/operator.ts starts the parts from one list.

import type { Logger } from '@penstock/agent/telemetry'
import type { Registry } from 'prom-client'
import type { ConditionType, Finding } from './api/conditions.ts'
import type { ResourceKind } from './api/kinds.ts'
import type { KubeObject } from './api/object.ts'
import type { Artifact } from './compile/artifact.ts'
import type { Caches } from './kube/cache.ts'
import type { KubeClient } from './kube/client.ts'
import type { Reviews } from './kube/reviews.ts'

/** From the flags of `penstock operator`. */
export interface OperatorSettings {
  /** Namespace of the operator. */
  readonly namespace: string
  /** Namespaces in which Agents of mode Node are honoured. */
  readonly agentNamespaces: readonly string[]
  /** Undefined: all. With a list, Cluster kinds are off. */
  readonly watchNamespaces: readonly string[] | undefined
  readonly watchNamespaceSelector: string | undefined
  /** Rights come from Roles in the namespaces that are watched: nothing beyond these can be read, asked or written. */
  readonly rolesOnly: boolean
  readonly secretsMode: 'All' | 'Label' | 'Namespaced'
  readonly leaderElection: boolean
  /** How long the last good version runs on after something that it refers to is gone. */
  readonly refGracePeriodMs: number
  /** Where probes and metrics are answered; empty: nowhere. */
  readonly httpAddress: string
  /** Where agents report to; empty: nowhere. */
  readonly heartbeatAddress: string
  /** URL under which agents reach it. */
  readonly heartbeatUrl: string
  /** How often an agent reports. */
  readonly heartbeatPeriodMs: number
  readonly webhookAddress: string
  /** Image of agents that name none. */
  readonly agentImage: string
  /** The NetworkPolicy of Agents that do not configure one; undefined: none. */
  readonly agentNetworkPolicy: 'Metadata' | 'NoMetadata' | undefined
  /** Secret with the token that may read metrics, in the namespace of an Agent; empty: none. */
  readonly metricsTokenSecret: string
  readonly clusterName: string
  readonly authorizeClusterPipelines: boolean
}

/** All that are looked into; undefined: every one. */
export function namespacesOf(settings: OperatorSettings): string[] | undefined {
  const { watchNamespaces, agentNamespaces, namespace } = settings
  return watchNamespaces && [...new Set([...watchNamespaces, ...agentNamespaces, namespace])]
}

export interface ArtifactChange {
  readonly id: string
  readonly current: Artifact | undefined
  readonly previous: Artifact | undefined
}

/** The newest accepted version of every Pipeline. */
export interface ArtifactStore {
  /** Whether every Pipeline of the start has been compiled. Until then, the operator removes nothing. */
  readonly complete: boolean
  get(id: string): Artifact | undefined
  values(): IterableIterator<Artifact>
  /** Hears of every change, and once with no change when it becomes complete. */
  subscribe(handler: (change: ArtifactChange | undefined) => void): Disposable
}

/** The report of one part about an object. It replaces the earlier report of that part. */
export interface StatusContribution {
  /** Generation of the object that it is about. */
  readonly generation: number
  readonly findings: readonly Finding[]
  /** Further members of the status, each owned by one part. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/**
 * The one writer of status. Parts report what they own; `Ready`, `Reconciling` and `Stalled` are derived. Aspects that no part has
 * reported yet keep their written state, so a restart writes nothing. A write that changes no condition waits up to 30 s.
 */
export interface StatusWriter {
  report(kind: ResourceKind, object: KubeObject, part: StatusPart, contribution: StatusContribution): void
  /** The part's last report, if there is one since the start. */
  reported(kind: ResourceKind, object: KubeObject, part: StatusPart): StatusContribution | undefined
}

/** The responsibilities: the condition types and status members of each part. */
export const statusParts = {
  /** controllers/pipeline.ts and policy/tenant-policies.ts */
  compile: { conditions: ['Accepted', 'ResolvedRefs'], fields: ['tests', 'usedBy', 'namespaces', 'authorizedBy'] },
  /** controllers/agent.ts */
  workload: {
    conditions: ['Accepted', 'Available', 'Contended', 'Narrowed'],
    fields: ['replicas', 'selector', 'bundle', 'unsupportedNodes'],
  },
  /** controllers/rollout.ts */
  rollout: {
    conditions: ['Programmed', 'Flowing', 'Reachable'],
    fields: [
      'programmedGeneration',
      'agents',
      'flow',
      'components',
      'summary',
      'revision',
      'stableRevision',
      'pipelines',
      'nodes',
      'sidecars',
      'history',
    ],
  },
} as const satisfies Record<
  string,
  { readonly conditions: readonly ConditionType[]; readonly fields: readonly string[] }
>

export type StatusPart = keyof typeof statusParts

export interface EventRecorder {
  /** Writes an Event: at most one for each object and reason in 5 minutes. */
  record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string, action?: string): void
}

export interface OperatorContext {
  readonly kube: KubeClient
  readonly reviews: Reviews
  readonly caches: Caches
  readonly artifacts: ArtifactStore
  readonly status: StatusWriter
  readonly events: EventRecorder
  readonly logger: Logger
  readonly metrics: Registry
  readonly settings: OperatorSettings
  /** Ends everything. */
  readonly signal: AbortSignal
  /** Whether this process may write; true without leader election. */
  isLeader(): boolean
  /** Identity of the leader as its Lease says, for those who pass requests on. */
  leader(): string | undefined
}

/** A part of the operator: a controller, or a server. */
export interface OperatorPart {
  readonly name: string
  /** Whether it runs on the leader alone: all that write do. */
  readonly leaderOnly: boolean
  /** Starts it; what it gives ends it, after it has finished what it was doing. */
  start(context: OperatorContext): Promise<AsyncDisposable>
}
