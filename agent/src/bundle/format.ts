// The files that an operator writes for its agents: a manifest that names revisions, a bundle of pipelines for each revision, and
// secret values. `schema` is the version of the bundle format. An agent ignores unknown members, so an older agent can read a newer
// bundle. This does not apply to unknown configuration options: an agent that ignored them would behave differently.

import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import type { Subscription } from '../component.ts'
import { underOperator } from '../config/globals.ts'
import { PenstockError } from '../errors.ts'
import type { EgressOptions } from '../net/egress.ts'
import type { ProgramBudget } from '../remap/rules.ts'

export const bundleSchema = 1

/** The operator's answer to an accepted heartbeat. */
export interface HeartbeatAnswer {
  /** How often the operator expects a report from this agent. */
  readonly periodMs?: number
  /** Keys of reported leftovers that are no longer needed. */
  readonly gone?: readonly string[]
  /** Current addresses of the API server, to which restricted pipelines may not connect. */
  readonly denied?: readonly string[]
}

/**
 * Files on an agent's disk for components that it does not run: the buffer of a sink by its id, or the positions of a pipeline by its
 * uid.
 */
export type Leftover =
  | { readonly kind: 'buffer'; readonly id: string }
  | { readonly kind: 'cursors'; readonly id: string; readonly pipeline: string }

export const leftoverKey = ({ kind, id }: Leftover): string => `${kind} ${id}`

/** Range of heartbeat periods that an operator may choose. */
export const heartbeatPeriods = { minMs: 1000, defaultMs: 30_000, maxMs: 300_000 } as const

/** A file of the bundle folder: gzip of `bytes` bytes of JSON. */
export interface Shard {
  readonly key: string
  /** SHA-256 of the compressed file, in hex. */
  readonly sha256: string
  /** Uncompressed. */
  readonly bytes: number
}

export interface Revision {
  /** sha256 of the uncompressed bundle, in hex. */
  readonly rev: string
  readonly shards: readonly Shard[]
}

export interface Candidate extends Revision {
  /** Percentage of the nodes, chosen by `takesCandidate`. */
  readonly percent: number
  readonly salt: string
  /** Nodes chosen in addition. */
  readonly also?: readonly string[] | undefined
}

export interface BundleManifest {
  readonly schema: number
  readonly stable?: Revision | undefined
  readonly candidate?: Candidate | undefined
  /** Revisions with further changes, each on some of the nodes of the one before it. */
  readonly later?: readonly Candidate[] | undefined
  /** Digests of secret values by their key; a new epoch means that some digest has changed. */
  readonly secrets?: Shard | undefined
  readonly secretsEpoch: string
  readonly minAgentVersion: string
  /**
   * Whether agents request their bundle from the operator; they use the mounted one while the operator is unavailable.
   */
  readonly delivery?: 'Stream' | undefined
  /** Maximum random delay before an agent's first pod request to the API server; absent: no delay. */
  readonly startSpreadMs?: number | undefined
}

/** An agent's request for its bundle. */
export interface StreamBody {
  readonly schema: number
  /** How long the operator may hold the request if there is no news. */
  readonly waitMs: number
  /** The content that the agent received last. */
  readonly have?: { readonly rev: string; readonly candidate: boolean; readonly mark: string } | undefined
  /**
   * Pipelines with lines to read or events to deliver: the agent keeps them even if its node no longer runs any of their pods.
   */
  readonly busy: readonly string[]
}

/** Maximum time for which the operator holds an agent's request for inquiries. */
export const holdMs = 25_000

/** Maximum number of pipelines that an agent may report as busy. */
export const maxBusy = 5000

/**
 * The first line of a response, which is compressed as a whole. The second line is the bundle. Without a second line, the
 * agent's content stays valid for a new revision.
 */
export interface StreamHead {
  readonly schema: number
  /** Revision of the whole bundle; the response may contain only a part of it. */
  readonly rev: string
  readonly candidate: boolean
  readonly secretsEpoch: string
  readonly minAgentVersion: string
  /** Equal as long as the bundle and its secret values are equal. */
  readonly mark: string
  /** Digest of the second line. */
  readonly sha256?: string | undefined
  /** By key: a base64 value and its digest. */
  readonly secrets?: Readonly<Record<string, { readonly value: string; readonly sha256: string }>> | undefined
}

export interface BundlePipeline {
  readonly uid: string
  readonly generation: number
  readonly hash: string
  /** True for a namespaced resource: lines logged by its programs do not appear in the agent's log. */
  readonly restricted?: boolean
  /** Addresses that its components may connect to. */
  readonly egress?: EgressOptions
  /** Ids of platform components, which may connect to any address and read files of the agent. */
  readonly platform?: readonly string[]
  /** Budget of its programs for one event, if it differs from the default. */
  readonly programBudget?: Partial<ProgramBudget>
  /** Weight of its share of the thread. */
  readonly cpuShare?: number
  /** The only secret values that its places may name. */
  readonly secrets?: readonly { readonly key: string }[]
  /**
   * The sink for events rejected by the destinations of its other sinks, and how many events per second each of them may
   * send there.
   */
  readonly deadLetter?: { readonly sink: string; readonly perSecond?: number | undefined }
}

export interface BundleSubscription extends Subscription {
  /** Id of the source. */
  readonly out: string
  readonly options?: Readonly<Record<string, unknown>>
}

type Components = Readonly<Record<string, Readonly<Record<string, unknown>>>>

export interface Bundle {
  readonly schema: number
  readonly interpolation: 'none'
  readonly pipelines: Readonly<Record<string, BundlePipeline>>
  readonly hub: { readonly subscriptions: readonly BundleSubscription[] }
  readonly sources?: Components
  readonly transforms: Components
  readonly sinks: Components
}

export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

type Choice = Pick<Candidate, 'percent' | 'salt' | 'also'>

/** Whether a node is among the first to run a candidate. When the percentage grows, nodes stay chosen. */
export function takesCandidate({ percent, salt, also }: Choice, node: string): boolean {
  return bucketOf(salt, node) < percent || also?.includes(node) === true
}

/** The last candidate that selects a node, which the node then runs. Without one, it runs the stable revision. */
export function candidateFor<T extends Choice>(
  { candidate, later = [] }: { readonly candidate?: T | undefined; readonly later?: readonly T[] | undefined },
  node: string,
): T | undefined {
  return (
    later.findLast((each) => takesCandidate(each, node)) ??
    (candidate && takesCandidate(candidate, node) ? candidate : undefined)
  )
}

/** A number from 0 to 99 for a node. */
export function bucketOf(salt: string, node: string): number {
  return createHash('sha256').update(`${salt}\u0000${node}`).digest().readUInt32BE(0) % 100
}

/** Id of the pipeline that a component belongs to: the first two parts of the component's id. */
export function pipelineOf(component: string): string {
  return component.slice(0, component.indexOf('/', component.indexOf('/') + 1))
}

export const maxBundleBytes = 512 * 1024 * 1024

/** Joins the shards of a revision and checks every byte. */
export function readBundle(revision: Revision, files: readonly Buffer[]): Bundle {
  const parts: Buffer[] = []
  for (const [index, shard] of revision.shards.entries()) parts.push(openShard(shard, files[index] as Buffer))
  const text = Buffer.concat(parts)
  if (sha256(text) !== revision.rev) {
    throw new PenstockError('PEN_CONFIG_INVALID', `The shards of revision ${revision.rev} do not match its digest.`)
  }
  return checkedBundle(text)
}

/** The content of a bundle's text, if this agent can read it. */
export function checkedBundle(text: Buffer): Bundle {
  const bundle = JSON.parse(text.toString('utf8')) as Bundle
  if (bundle.schema !== bundleSchema || bundle.interpolation !== 'none') {
    throw new PenstockError(
      'PEN_CONFIG_INVALID',
      `The bundle has schema ${bundle.schema} and interpolation "${bundle.interpolation}"; this agent reads schema ${bundleSchema} with "none". Update the agent.`,
    )
  }
  for (const [option, instead] of Object.entries(underOperator)) {
    if (!Object.hasOwn(bundle, option)) continue
    throw new PenstockError(
      'PEN_CONFIG_INVALID',
      `The bundle has the option \`${option}\`, which this agent does not accept from a bundle. ${instead}`,
    )
  }
  return bundle
}

export function openShard(shard: Shard, file: Buffer): Buffer {
  if (sha256(file) !== shard.sha256) {
    throw new PenstockError('PEN_CONFIG_INVALID', `The shard ${shard.key} does not match the digest in its manifest.`)
  }
  return gunzipSync(file, { maxOutputLength: Math.min(maxBundleBytes, Math.max(1, shard.bytes)) })
}
