// Reads the content that an earlier process delivered for an Agent from its Secrets.

import { gunzipSync } from 'node:zlib'
import { type BundleManifest, type Revision, readBundle, type Shard, sha256 } from '@penstock/agent/bundle'
import { isTable } from '@penstock/agent/schema'
import type { Delivered, RolloutRecord } from '../../fleet/state.ts'
import { shardKey } from '../../render/bundle.ts'
import { fragmentsOf } from '../../render/fragment.ts'
import type { AgentSecrets } from '../agent-secrets.ts'
import { shareFragments } from '../revisions.ts'

/** The content left in the Secrets by an earlier leader. */
export function restored(
  secrets: Pick<AgentSecrets, 'config' | 'annotation'>,
  now: number,
  onUnreadable: (error: unknown) => void,
): Delivered {
  const delivered: Delivered = {
    stable: undefined,
    candidate: undefined,
    record: { rolledBack: {}, history: [] },
    revisions: new Map(),
    selected: new Map(),
    evicted: new Map(),
    startSpreadMs: 0,
    why: '',
  }
  const { config, annotation } = secrets
  const text = config.data('manifest.json')
  if (text === undefined) return delivered
  try {
    const manifest = JSON.parse(text.toString('utf8')) as BundleManifest
    delivered.startSpreadMs = manifest.startSpreadMs ?? 0
    delivered.record = recordIn(annotation, now) ?? delivered.record
    const { later = [] } = manifest
    const named = [manifest.stable, manifest.candidate, ...later].filter((revision) => revision !== undefined)
    // The manifest does not name revisions that a rollout may return to, or that agents still run for a moment.
    const kept = [...config.slots.keys()].flatMap((key) => {
      const [, prefix] = /^r([0-9a-f]{12})-0\.json\.gz$/.exec(key) ?? []
      if (prefix === undefined || named.some(({ rev }) => rev.startsWith(prefix))) return []
      return revisionOf(shardsOf(prefix, config), config)
    })
    for (const revision of [...named, ...kept]) {
      const files = revision.shards.map((shard) => config.data(shard.key))
      if (files.length === 0 || files.includes(undefined)) continue
      const shards = revision.shards.map((shard, index) => ({ ...shard, data: files[index] as Buffer }))
      const fragments = fragmentsOf(readBundle(revision, files as Buffer[]))
      delivered.revisions.set(revision.rev, { rev: revision.rev, shards, fragments })
    }
    shareFragments(delivered.revisions)
    if (manifest.stable !== undefined && delivered.revisions.has(manifest.stable.rev))
      delivered.stable = manifest.stable
    if (manifest.candidate !== undefined && delivered.revisions.has(manifest.candidate.rev)) {
      delivered.candidate = manifest.candidate
      const lost = later.findIndex(({ rev }) => !delivered.revisions.has(rev))
      delivered.later = lost < 0 ? later : later.slice(0, lost)
    }
  } catch (error) {
    onUnreadable(error)
  }
  return delivered
}

const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

/**
 * The record of a rollout; undefined if another client has changed it. Without a record, a trial begins again, and rolled back versions
 * are tried again, because only the content shows what agents run.
 */
function recordIn(annotation: string | undefined, now: number): RolloutRecord | undefined {
  // With a clock that was ahead of this one, the rollout would wait until this clock reaches its times.
  const past = (_: string, value: unknown) =>
    typeof value === 'string' && isTime.test(value) && Date.parse(value) > now ? new Date(now).toISOString() : value
  try {
    const found: unknown = JSON.parse(annotation ?? 'null', past)
    const isWhole = isTable(found) && isTable(found['rolledBack']) && Array.isArray(found['history'])
    return isWhole ? (found as unknown as RolloutRecord) : undefined
  } catch {
    return undefined
  }
}

/** The revision that consists of these shards. Missing shards cause an error elsewhere. */
function revisionOf(shards: readonly Shard[], { data }: AgentSecrets['config']): Revision {
  return { rev: sha256(Buffer.concat(shards.map(({ key }) => gunzipSync(data(key) as Buffer)))), shards }
}

/** The shards of a revision in the Secrets, by the beginning of its name. */
function shardsOf(rev: string, { slots, data }: AgentSecrets['config']): Shard[] {
  const shards: Shard[] = []
  for (;;) {
    const key = shardKey(rev, shards.length)
    const file = slots.has(key) ? data(key) : undefined
    if (file === undefined) return shards
    shards.push({ key, sha256: sha256(file), bytes: gunzipSync(file).length })
  }
}
