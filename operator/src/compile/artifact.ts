// One compiled Pipeline: everything that a bundle needs from it, without values of Secrets. Plain data, equal for equal resources:
// every replica creates the same artifact, even after restarts.

import { createHash } from 'node:crypto'
import type { ProgramBudget } from '@penstock/agent/schema'

export type ArtifactMode = 'Node' | 'Aggregator' | 'Sidecar'

/** Options of a component in the agent's form; text is literal. A `SecretPlace` replaces each secret. */
export type ComponentOptions = Readonly<Record<string, unknown>>

export interface Artifact {
  /** `shop/checkout`, `_cluster/platform`. */
  readonly id: string
  readonly kind: 'Pipeline' | 'ClusterPipeline'
  /** Undefined for a ClusterPipeline. */
  readonly namespace: string | undefined
  readonly name: string
  readonly uid: string
  /** The compiled generation: older than that of the object if the newest is not accepted. */
  readonly generation: number
  /** Creation time of the Pipeline: the youngest Pipeline is excluded when a shared limit is reached (T14). */
  readonly createdAt: string
  /** Labels of the Pipeline, for Agents that select by them. */
  readonly labels: Readonly<Record<string, string>>
  /** `sha256:` and the digest of everything that an agent receives; secrets by key, not by value. */
  readonly hash: string
  readonly mode: ArtifactMode
  readonly hub: { readonly subscriptions: readonly HubSubscription[] }
  /** All sources except those of pod logs, by component id. */
  readonly sources: Readonly<Record<string, ComponentOptions>>
  readonly transforms: Readonly<Record<string, ComponentOptions>>
  readonly sinks: Readonly<Record<string, ComponentOptions>>
  /** Types of the sources, including those of the hub. */
  readonly sourceTypes: readonly string[]
  readonly secretRefs: readonly SecretRef[]
  /** Keys of secrets from shared objects whose owner lets tenants' Agents carry them. */
  readonly lent?: readonly string[] | undefined
  /**
   * Shared objects, such as `ClusterSink loki`, with a plain-text secret that their owner does not grant to tenants'
   * Agents.
   */
  readonly withheld?: readonly string[] | undefined
  /** Sum of the disk buffers' sizes. */
  readonly diskBufferBytes: number
  /** Rules for the agent that runs it. */
  readonly tenancy: Tenancy
  /** Digest of the TenantPolicy rules under which it was accepted; undefined for versions stored by an earlier release. */
  readonly rules?: string | undefined
  /**
   * Components of shared objects, for which their owners are responsible: the rules for connections (T7) and files (T4) do not
   * apply to them.
   */
  readonly platform?: readonly string[] | undefined
  /**
   * The sink for events rejected by the destinations of the other sinks, and how many per second each of them may send
   * there.
   */
  readonly deadLetter?: { readonly sink: string; readonly perSecond?: number | undefined } | undefined
  /** Value of the annotation `penstock.dev/retry`: a new value allows a rolled-back content to be tried again. */
  readonly retry?: string | undefined
}

/** An `orchestrator_logs` source as an agent runs it: a reader of the node's shared collection with its own position. */
export interface HubSubscription {
  /** `<pipeline uid>/<source name>`: identity of the position, independent of the ids of components. */
  readonly cursor: string
  /**
   * The namespaces to read; undefined: those of `namespaceSelector`, or all. Set by the operator, never by a tenant (T3).
   */
  readonly namespaces?: readonly string[] | undefined
  /** Selector for namespace labels, only in ClusterPipelines. */
  readonly namespaceSelector?: string | undefined
  /** Labels of pods; empty: all. */
  readonly podSelector: string
  /** Fields of pods; undefined: all. */
  readonly fieldSelector?: string | undefined
  readonly excludeContainers: readonly string[]
  /** Only pods with the label `penstock.dev/collect: "true"`. */
  readonly optIn?: boolean | undefined
  readonly limits?: HubLimits | undefined
  /** Component id of the resulting events. */
  readonly out: string
  /** The source's other options, with `multiline` in the agent's form. */
  readonly options: ComponentOptions
}

export interface HubLimits {
  readonly perContainer?:
    | { readonly lines?: number | undefined; readonly bytes?: number | undefined; readonly onLimit: 'drop' | 'lag' }
    | undefined
  readonly pipeline?: { readonly bytes: number; readonly onLimit: 'drop' | 'lag' } | undefined
  /** Limits of a namespace: all of its Pipelines on an agent share them. */
  readonly shared?: readonly { readonly key: string; readonly bytes: number }[] | undefined
}

/** The rules that an agent must enforce on a Pipeline. */
export interface Tenancy {
  /** False for ClusterPipelines: none of the other rules is enforced then. */
  readonly restricted: boolean
  /** Networks to which connections are denied (T7). */
  readonly denyCidrs: readonly string[]
  /** Hosts that endpoints may name; empty: all. */
  readonly allowHosts: readonly string[]
  /** Whether the identity of the agent and its node may be used (T5). */
  readonly implicitCredentials?: boolean | undefined
  /** The budget of programs for one event, if a policy sets it (T11). */
  readonly programBudget?: Partial<ProgramBudget> | undefined
  /** Weight of its CPU share relative to other Pipelines (T11). */
  readonly cpuShare: number
}

/** A value that an agent receives in its Secret of secret values, under `key`. */
export interface SecretRef {
  /** 32 hex digits. */
  readonly key: string
  /** The parts of the value, to be joined: text, or a key of a Secret or ConfigMap. */
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

/** The key of a value: built from namespace, Pipeline, Secret and key if the value is exactly one key of a Secret. */
export function secretKey(pipeline: string, parts: SecretRef['parts']): string {
  const [only] = parts
  const plain = parts.length === 1 && typeof only === 'object' && only.filter === undefined && only.kind === 'Secret'
  const text = plain
    ? `${pipeline}/${only.namespace}/${only.name}/${only.key}`
    : `${pipeline}/${JSON.stringify(parts.map((part) => (typeof part === 'string' ? part : [part.kind, part.namespace, part.name, part.key, part.filter ?? ''])))}`
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** Assembles a value. `read` returns the bytes of a key, or undefined if it does not exist. */
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
