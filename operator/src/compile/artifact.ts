// One compiled Pipeline: everything that a bundle needs of it, without values of Secrets. Plain data, equal for equal resources; every
// replica creates the same artifact, after every restart.

import { createHash } from 'node:crypto'
import type { ProgramBudget } from '@penstock/agent/schema'

export type ArtifactMode = 'Node' | 'Aggregator' | 'Sidecar'

/** Options of a component as an agent takes them; text is literal. Where a secret belongs stands a `SecretPlace`. */
export type ComponentOptions = Readonly<Record<string, unknown>>

export interface Artifact {
  /** `shop/checkout`, `_cluster/platform`. */
  readonly id: string
  readonly kind: 'Pipeline' | 'ClusterPipeline'
  /** Undefined for a ClusterPipeline. */
  readonly namespace: string | undefined
  readonly name: string
  readonly uid: string
  /** The generation that was compiled: an older one than the object's when the newest is not accepted. */
  readonly generation: number
  /** When the Pipeline was created: the youngest gives way where a shared limit is hit (T14). */
  readonly createdAt: string
  /** Labels of the Pipeline, for Agents that select by them. */
  readonly labels: Readonly<Record<string, string>>
  /** `sha256:` and the digest of all that an agent gets of it; secrets by key, not by value. */
  readonly hash: string
  readonly mode: ArtifactMode
  readonly hub: { readonly subscriptions: readonly HubSubscription[] }
  /** All sources but those of pod logs, by component id. */
  readonly sources: Readonly<Record<string, ComponentOptions>>
  readonly transforms: Readonly<Record<string, ComponentOptions>>
  readonly sinks: Readonly<Record<string, ComponentOptions>>
  /** Types of the sources, of the hub too. */
  readonly sourceTypes: readonly string[]
  readonly secretRefs: readonly SecretRef[]
  /** Keys of those from shared objects whose owner lets Agents of tenants carry their secrets. */
  readonly lent?: readonly string[] | undefined
  /** Shared objects, as `ClusterSink loki`, that hold a secret in plain text which their owner does not lend. */
  readonly withheld?: readonly string[] | undefined
  /** Sum of the disk buffers' sizes. */
  readonly diskBufferBytes: number
  /** Rules for the agent that runs it. */
  readonly tenancy: Tenancy
  /** Digest of the rules of the TenantPolicy under which it was accepted; undefined in versions that an earlier release has kept. */
  readonly rules?: string | undefined
  /** Components of shared objects, which their owners answer for: the rules for connections (T7) and files (T4) pass them over. */
  readonly platform?: readonly string[] | undefined
  /** The sink for what the destinations of the others reject, and how many a second each of them may send there. */
  readonly deadLetter?: { readonly sink: string; readonly perSecond?: number | undefined } | undefined
  /** Value of the annotation `penstock.dev/retry`: a new one lets a rolled back content be tried again. */
  readonly retry?: string | undefined
}

/** The form of an `orchestrator_logs` source in an agent: a reader of the node's shared collection with its own cursor. */
export interface HubSubscription {
  /** `<pipeline uid>/<source name>`: identity of the position, independent of the ids of components. */
  readonly cursor: string
  /** The namespaces read; undefined: those of `namespaceSelector`, or all. Set by the operator, never by a tenant (T3). */
  readonly namespaces?: readonly string[] | undefined
  /** Labels of namespaces, of ClusterPipelines alone. */
  readonly namespaceSelector?: string | undefined
  /** Labels of pods; empty: all. */
  readonly podSelector: string
  /** Fields of pods; undefined: all. */
  readonly fieldSelector?: string | undefined
  readonly excludeContainers: readonly string[]
  /** Only pods with the label `penstock.dev/collect: "true"`. */
  readonly optIn?: boolean | undefined
  readonly limits?: HubLimits | undefined
  /** Component id under which the events continue. */
  readonly out: string
  /** The source's further options, `multiline` as the agent has it. */
  readonly options: ComponentOptions
}

export interface HubLimits {
  readonly perContainer?:
    | { readonly lines?: number | undefined; readonly bytes?: number | undefined; readonly onLimit: 'drop' | 'lag' }
    | undefined
  readonly pipeline?: { readonly bytes: number; readonly onLimit: 'drop' | 'lag' } | undefined
  /** Limits of a namespace: what its Pipelines read on an agent counts together. */
  readonly shared?: readonly { readonly key: string; readonly bytes: number }[] | undefined
}

/** The rules that an agent must enforce on a Pipeline. */
export interface Tenancy {
  /** False for ClusterPipelines: none of the rest is enforced. */
  readonly restricted: boolean
  /** Networks that no connection may go to (T7). */
  readonly denyCidrs: readonly string[]
  /** Hosts that endpoints may name; empty: all. */
  readonly allowHosts: readonly string[]
  /** Whether the identity of the agent and its node may be used (T5). */
  readonly implicitCredentials?: boolean | undefined
  /** The budget of programs for one event, if a policy sets it (T11). */
  readonly programBudget?: Partial<ProgramBudget> | undefined
  /** Share of the CPU against other Pipelines (T11). */
  readonly cpuShare: number
}

/** A value that an agent gets through the Secret of secret values, under `key`. */
export interface SecretRef {
  /** 32 hex digits. */
  readonly key: string
  /** The value is these, joined: text, or a key of a Secret or ConfigMap. */
  readonly parts: readonly (string | SecretPart)[]
}

export interface SecretPart {
  readonly kind: 'Secret' | 'ConfigMap'
  readonly namespace: string
  readonly name: string
  readonly key: string
  /** `uri`: percent-encoded. */
  readonly filter?: 'uri' | undefined
}

/** The key of a value: of namespace, Pipeline, Secret and key when it is one key of a Secret as it is. */
export function secretKey(pipeline: string, parts: SecretRef['parts']): string {
  const [only] = parts
  const plain = parts.length === 1 && typeof only === 'object' && only.filter === undefined && only.kind === 'Secret'
  const text = plain
    ? `${pipeline}/${only.namespace}/${only.name}/${only.key}`
    : `${pipeline}/${JSON.stringify(parts.map((part) => (typeof part === 'string' ? part : [part.kind, part.namespace, part.name, part.key, part.filter ?? ''])))}`
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** Puts a value together. `read` gives the bytes of a key, or undefined when it is not there. */
export function secretValue(
  ref: SecretRef,
  read: (part: SecretPart) => Uint8Array | undefined,
): { readonly ok: true; readonly value: Buffer } | { readonly ok: false; readonly missing: SecretPart } {
  const pieces: Uint8Array[] = []
  for (const part of ref.parts) {
    if (typeof part === 'string') {
      pieces.push(Buffer.from(part))
      continue
    }
    const bytes = read(part)
    if (bytes === undefined) return { ok: false, missing: part }
    pieces.push(part.filter === 'uri' ? Buffer.from(encodeURIComponent(Buffer.from(bytes).toString('utf8'))) : bytes)
  }
  return { ok: true, value: Buffer.concat(pieces) }
}
