// The manifest of a bundle folder, and the digests of its secret values. Pure.

import { gzipSync } from 'node:zlib'
import {
  type BundleManifest,
  bundleSchema,
  type Candidate,
  canonicalJson,
  type Revision,
  sha256,
} from '@penstock/agent/bundle'
import type { ShardFile } from './bundle.ts'

/** The oldest agent version that can read this operator's bundles. */
export const minAgentVersion = '0.1.0'

export interface Digests {
  /** By key. */
  readonly of: Readonly<Record<string, string>>
  readonly file: ShardFile
  readonly epoch: string
}

/** Digests of values by key. Agents use them to verify that all of their secrets belong to this revision. */
export function digestFile(values: ReadonlyMap<string, Buffer>): Digests {
  const digests: Record<string, string> = {}
  for (const [key, value] of values) digests[key] = sha256(value)
  const text = Buffer.from(canonicalJson(digests))
  const data = gzipSync(text)
  const epoch = sha256(text).slice(0, 12)
  return { of: digests, epoch, file: { key: `s${epoch}.json.gz`, sha256: sha256(data), bytes: text.length, data } }
}

export interface ManifestOptions {
  readonly delivery?: 'Mounted' | 'Stream' | undefined
  /** Revisions that are tried beside the candidate. */
  readonly later?: readonly Candidate[] | undefined
  /** The maximum time that an agent waits at its start before its first request to the API server. */
  readonly startSpreadMs?: number | undefined
}

export function renderManifest(
  stable: Revision | undefined,
  candidate: Candidate | undefined,
  digests: Digests,
  { delivery, later = [], startSpreadMs = 0 }: ManifestOptions = {},
): Buffer {
  const plain = ({ rev, shards }: Revision) => ({
    rev,
    shards: shards.map(({ key, sha256: digest, bytes }) => ({ key, sha256: digest, bytes })),
  })
  const tried = ({ percent, salt, also, ...revision }: Candidate) => ({
    ...plain(revision),
    ...{ percent, salt },
    ...(also === undefined || also.length === 0 ? {} : { also }),
  })
  const { key, sha256: digest, bytes } = digests.file
  const manifest: BundleManifest = {
    schema: bundleSchema,
    ...(stable === undefined ? {} : { stable: plain(stable) }),
    ...(candidate === undefined ? {} : { candidate: tried(candidate) }),
    ...(later.length === 0 ? {} : { later: later.map(tried) }),
    secrets: { key, sha256: digest, bytes },
    secretsEpoch: digests.epoch,
    minAgentVersion,
    ...(delivery === 'Stream' ? { delivery } : {}),
    ...(startSpreadMs === 0 ? {} : { startSpreadMs }),
  }
  return Buffer.from(canonicalJson(manifest))
}

/**
 * Chosen so that little more than 50 agents per second send a request to the API server when all of them start. The steps are
 * coarse, because each new step requires a write.
 */
const startSpreads = [
  { nodes: 500, ms: 10_000 },
  { nodes: 400, ms: 8_000 },
  { nodes: 300, ms: 6_000 },
  { nodes: 200, ms: 4_000 },
  { nodes: 100, ms: 2_000 },
  { nodes: 51, ms: 1_000 },
]

/** The longest wait of an agent in a fleet of this size. A fleet whose size varies around a step keeps the higher value. */
export function startSpreadOf(nodes: number, before: number): number {
  const of = (count: number) => startSpreads.find((step) => count >= step.nodes)?.ms ?? 0
  return Math.max(of(nodes), Math.min(before, of(nodes / 0.8)))
}
