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

/** The settings from the flags of `penstock operator`. */
export interface OperatorSettings {
  /** Namespace of the operator. */
  readonly namespace: string
  /** Namespaces in which Agents of mode Node are allowed. */
  readonly agentNamespaces: readonly string[]
  /** The watched namespaces; undefined: all. With a list, the cluster-scoped kinds have no effect. */
  readonly watchNamespaces: readonly string[] | undefined
  readonly watchNamespaceSelector: string | undefined
  /** Whether all rights come from Roles in the watched namespaces, so that the operator cannot access anything else. */
  readonly rolesOnly: boolean
  readonly secretsMode: 'All' | 'Label' | 'Namespaced'
  readonly leaderElection: boolean
  /** How long the last good version continues to run after an object that it refers to was deleted. */
  readonly refGracePeriodMs: number
  /** Listening address for probes and metrics; empty: none. */
  readonly httpAddress: string
  /** Listening address for the reports of agents; empty: none. */
  readonly heartbeatAddress: string
  /** URL at which agents reach the operator. */
  readonly heartbeatUrl: string
  /** Interval between two reports of an agent. */
  readonly heartbeatPeriodMs: number
  readonly webhookAddress: string
  /** Default image of Agents. */
  readonly agentImage: string
  /** The default NetworkPolicy of Agents; undefined: none. */
  readonly agentNetworkPolicy: 'Metadata' | 'NoMetadata' | undefined
  /** Name of the Secret, in the namespace of an Agent, with the token that may read metrics; empty: none. */
  readonly metricsTokenSecret: string
  readonly clusterName: string
  readonly authorizeClusterPipelines: boolean
}

/** All namespaces that the operator watches; undefined: every namespace. */
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
  /** Whether every Pipeline that existed at the start has been compiled. Until then, the operator removes nothing. */
  readonly complete: boolean
  get(id: string): Artifact | undefined
  values(): IterableIterator<Artifact>
  /** Ids of Pipelines without a known version: agents keep the one that they have. */
  readonly unknown: ReadonlySet<string>
  /** Calls the handler for every change, and without a change when the store becomes complete or `unknown` changes. */
  subscribe(handler: (change: ArtifactChange | undefined) => void): Disposable
}

/** The report of one part about an object. It replaces the earlier report of that part. */
export interface StatusContribution {
  /** Generation of the object that the report describes. */
  readonly generation: number
  readonly findings: readonly Finding[]
  /** Other members of the status, each owned by one part. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/**
 * The only writer of status. Each part reports the conditions and members that it owns, and `Ready`, `Reconciling` and `Stalled`
 * derive from them. Conditions and members that no part has reported yet keep their stored values, so a restart writes nothing. A
 * write that changes no condition waits up to 30 s.
 */
export interface StatusWriter {
  report(kind: ResourceKind, object: KubeObject, part: StatusPart, contribution: StatusContribution): void
  /** The part's last report since the start, if any. */
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
  /** Writes an Event: at most one for each generation of an object and reason in 5 minutes. */
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
  /** Identity of the leader in the Lease, for servers that forward requests to it. */
  leader(): string | undefined
}

/** A part of the operator: a controller, or a server. */
export interface OperatorPart {
  readonly name: string
  /** Whether it runs only on the leader, as all parts do that write. */
  readonly leaderOnly: boolean
  /** Starts the part. Disposing the result stops it after its current work. */
  start(context: OperatorContext): Promise<AsyncDisposable>
}
