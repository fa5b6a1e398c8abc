// The manifest of a bundle folder, and the digests of the secret values that go with it. Pure.

import { gzipSync } from 'node:zlib'
import { bundleSchema, type Candidate, type Manifest, type Revision, sha256 } from '@penstock/agent/bundle/format'
import { canonicalJson } from '@penstock/agent/config/canonical'
import type { ShardFile } from './bundle.ts'

/** The oldest agent that can read what this operator writes. */
export const minAgentVersion = '0.1.0'

export interface Digests {
  /** By key. */
  readonly of: Readonly<Record<string, string>>
  readonly file: ShardFile
  readonly epoch: string
}

/** Digests of values by key: what tells an agent that all of its secrets are of this age. */
export function digestFile(values: ReadonlyMap<string, Buffer>): Digests {
  const digests: Record<string, string> = {}
  for (const [key, value] of values) digests[key] = sha256(value)
  const text = Buffer.from(canonicalJson(digests))
  const data = gzipSync(text)
  const epoch = sha256(text).slice(0, 12)
  return { of: digests, epoch, file: { key: `s${epoch}.json.gz`, sha256: sha256(data), bytes: text.length, data } }
}

export function renderManifest(
  stable: Revision | undefined,
  candidate: Candidate | undefined,
  digests: Digests,
  delivery?: 'Mounted' | 'Stream',
): Buffer {
  const plain = ({ rev, shards }: Revision) => ({
    rev,
    shards: shards.map(({ key, sha256: digest, bytes }) => ({ key, sha256: digest, bytes })),
  })
  const { key, sha256: digest, bytes } = digests.file
  const manifest: Manifest = {
    schema: bundleSchema,
    ...(stable === undefined ? {} : { stable: plain(stable) }),
    ...(candidate === undefined
      ? {}
      : { candidate: { ...plain(candidate), percent: candidate.percent, salt: candidate.salt } }),
    secrets: { key, sha256: digest, bytes },
    secretsEpoch: digests.epoch,
    minAgentVersion,
    ...(delivery === 'Stream' ? { delivery } : {}),
  }
  return Buffer.from(canonicalJson(manifest))
}
