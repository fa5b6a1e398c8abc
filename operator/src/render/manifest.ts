// The manifest of a bundle folder, and the digests of the secret values that go with it. Pure.

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

/** The oldest agent that can read what this operator writes. */
export const minAgentVersion = '0.1.0'

export interface Digests {
  /** By key. */
  readonly of: Readonly<Record<string, string>>
  readonly file: ShardFile
  readonly epoch: string
}

/** Digests of values by key, by which an agent verifies that all of its secrets belong to this revision. */
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
  /** The most that an agent waits at its start before it asks the API server. */
  readonly startSpreadMs?: number | undefined
}

export function renderManifest(
  stable: Revision | undefined,
  candidate: Candidate | undefined,
  digests: Digests,
  { delivery, startSpreadMs = 0 }: ManifestOptions = {},
): Buffer {
  const plain = ({ rev, shards }: Revision) => ({
    rev,
    shards: shards.map(({ key, sha256: digest, bytes }) => ({ key, sha256: digest, bytes })),
  })
  const { key, sha256: digest, bytes } = digests.file
  const manifest: BundleManifest = {
    schema: bundleSchema,
    ...(stable === undefined ? {} : { stable: plain(stable) }),
    ...(candidate === undefined
      ? {}
      : { candidate: { ...plain(candidate), percent: candidate.percent, salt: candidate.salt } }),
    secrets: { key, sha256: digest, bytes },
    secretsEpoch: digests.epoch,
    minAgentVersion,
    ...(delivery === 'Stream' ? { delivery } : {}),
    ...(startSpreadMs === 0 ? {} : { startSpreadMs }),
  }
  return Buffer.from(canonicalJson(manifest))
}

/** So that not much more than 50 agents ask the API server in a second when all of them start: coarse, as each step is a write. */
const startSpreads = [
  { nodes: 500, ms: 10_000 },
  { nodes: 400, ms: 8_000 },
  { nodes: 300, ms: 6_000 },
  { nodes: 200, ms: 4_000 },
  { nodes: 100, ms: 2_000 },
  { nodes: 51, ms: 1_000 },
]

/** The longest wait of an agent in a fleet of this size. A fleet whose size varies around a step stays on the upper one. */
export function startSpreadOf(nodes: number, before: number): number {
  const of = (count: number) => startSpreads.find((step) => count >= step.nodes)?.ms ?? 0
  return Math.max(of(nodes), Math.min(before, of(nodes / 0.8)))
}
