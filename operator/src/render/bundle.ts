// Renders fragments to the bytes that agents receive. Pure; the same fragments in any order result in the same bytes, because keys are
// sorted and the content does not depend on time, place or order. If space is short, the youngest fragments are excluded (T14); rendering
// never fails for this reason.

import { promisify } from 'node:util'
import { gzip as gzipWithCallback } from 'node:zlib'
import { bundleSchema, type Shard, sha256 } from '@penstock/agent/bundle'
import type { Fragment } from './fragment.ts'

const gzip = promisify(gzipWithCallback)

/** Limit for a compressed shard: a Secret can contain 1 MiB, and the first one also contains the manifest. */
const shardBytes = 900 * 1024
/** Limit for one revision: two revisions, and those that agents still run, must fit into the slots together. */
const maxShards = 3

export interface ShardFile extends Shard {
  readonly data: Buffer
}

export interface RenderedBundle {
  readonly rev: string
  readonly rawBytes: number
  readonly compressedBytes: number
  readonly shards: readonly ShardFile[]
  readonly fragments: ReadonlyMap<string, Fragment>
  /** Ids of the pipelines that were excluded because the bundle would otherwise be too large. */
  readonly evicted: readonly string[]
}

/** A pipeline that may be part of a bundle. */
export interface BundledPipeline {
  readonly fragment: Fragment
  readonly createdAt: string
}

export interface BundleLimits {
  readonly shardBytes: number
  readonly maxShards: number
}

export async function renderBundle(
  entries: readonly BundledPipeline[],
  limits: BundleLimits = { shardBytes, maxShards },
): Promise<RenderedBundle> {
  const byAge = entries.toSorted(older)
  let kept = byAge.length
  for (;;) {
    const included = byAge.slice(0, kept)
    const text = textOf(included.map(({ fragment }) => fragment))
    const rev = sha256(text)
    const shards = await shardsOf(text, rev, limits)
    if (shards !== undefined || kept === 0) {
      const files = shards ?? []
      return {
        rev,
        rawBytes: text.length,
        compressedBytes: files.reduce((sum, { data }) => sum + data.length, 0),
        shards: files,
        fragments: new Map(included.map(({ fragment }) => [fragment.id, fragment])),
        evicted: byAge.slice(kept).map(({ fragment }) => fragment.id),
      }
    }
    kept = await fitting(byAge, kept, limits)
  }
}

/** The oldest first; of the same age, by name. */
export function older(left: BundledPipeline, right: BundledPipeline): number {
  const [leftKey, rightKey] = [left, right].map(({ createdAt, fragment }) => `${createdAt}\u0000${fragment.id}`)
  return (leftKey as string) < (rightKey as string) ? -1 : 1
}

/** How many of the oldest fragments fit, determined by binary search. */
async function fitting(byAge: readonly BundledPipeline[], tooMany: number, limits: BundleLimits): Promise<number> {
  let fits = 0
  let not = tooMany
  while (not - fits > 1) {
    const middle = (fits + not) >> 1
    const text = textOf(byAge.slice(0, middle).map(({ fragment }) => fragment))
    if ((await shardsOf(text, '', limits)) === undefined) not = middle
    else fits = middle
  }
  return fits
}

/** The canonical JSON of a bundle. */
export function textOf(fragments: readonly Fragment[]): Buffer {
  const table = (members: (readonly [string, string])[]) =>
    `{${members
      .sort(byId)
      .map(([id, json]) => `${JSON.stringify(id)}:${json}`)
      .join(',')}}`
  const all = (kind: 'sources' | 'transforms' | 'sinks' | 'subscriptions') =>
    fragments.flatMap((fragment) => fragment[kind] as (readonly [string, string])[])
  const subscriptions = all('subscriptions')
    .sort(byId)
    .map(([, json]) => json)
  return Buffer.from(
    `{"hub":{"subscriptions":[${subscriptions.join(',')}]},"interpolation":"none","pipelines":${table(
      fragments.map(({ id, entry }) => [id, entry] as const),
    )},"schema":${bundleSchema},"sinks":${table(all('sinks'))},"sources":${table(all('sources'))},"transforms":${table(all('transforms'))}}`,
  )
}

function byId(left: readonly [string, string], right: readonly [string, string]): number {
  return left[0] < right[0] ? -1 : left[0] > right[0] ? 1 : 0
}

/** Name of a piece of a revision. */
export function shardKey(rev: string, index: number): string {
  return `r${rev.slice(0, 12)}-${index}.json.gz`
}

/** Compressed pieces that each fit into a slot; undefined if there are too many. */
async function shardsOf(text: Buffer, rev: string, limits: BundleLimits): Promise<ShardFile[] | undefined> {
  for (let count = 1; count <= limits.maxShards; count++) {
    const size = Math.ceil(text.length / count)
    // Text cannot be compressed to much less than a thirtieth, so there is no need to try.
    if (size > limits.shardBytes * 1000) continue
    const shards: ShardFile[] = []
    for (let at = 0; at < text.length; at += size) {
      const part = text.subarray(at, at + size)
      const data = await gzip(part, { level: 6 })
      if (data.length > limits.shardBytes) break
      const key = shardKey(rev, shards.length)
      shards.push({ key, sha256: sha256(data), bytes: part.length, data })
    }
    if (shards.reduce((sum, { bytes }) => sum + bytes, 0) === text.length) return shards
  }
  return undefined
}
