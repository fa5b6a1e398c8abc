// Versions of Pipelines that were rolled back, and are not tried again until they or their `retry` annotation change. The record is
// stored in an annotation, so only the newest entries keep their reason, and older ones become digests. Pure.

import { sha256 } from '@penstock/agent/bundle'
import type { RolloutRecord } from './state.ts'

export type RolledBack = RolloutRecord['rolledBack']

/** The version of a Pipeline that a rollout tried. */
export interface TriedVersion {
  readonly id: string
  readonly hash: string
  readonly retry?: string | undefined
}

/** Maximum number of entries with a reason. */
export const maxRolledBack = 100
export const maxRolledBackBytes = 40_000
/** Maximum number of entries without a reason. The oldest are dropped, and may be tried again. */
export const maxWithheld = 2000
const maxWhyBytes = 600
const maxRetry = 64

/** Shortens the annotation, because users may set it to any text. */
export const shortRetry = (retry: string | undefined): string | undefined =>
  retry === undefined || retry.length <= maxRetry ? retry : sha256(retry).slice(0, maxRetry)

export const digestOf = ({ id, hash, retry }: TriedVersion): string =>
  Buffer.from(sha256(`${id} ${hash} ${retry ?? ''}`), 'hex')
    .toString('base64url')
    .slice(0, 11)

/** Adds these versions, each with its reason. */
export function withRolledBack(
  record: RolloutRecord,
  versions: readonly (TriedVersion & { readonly why: string })[],
): RolloutRecord {
  const all = new Map(Object.entries(record.rolledBack))
  for (const { id, hash, retry, why } of versions) {
    // The newest entries come last.
    all.delete(id)
    all.set(id, { hash, ...(retry === undefined ? {} : { retry }), why: cut(why) })
  }
  const entries = [...all]
  let first = Math.max(0, entries.length - maxRolledBack)
  while (sizeOf(entries.slice(first)) > maxRolledBackBytes) first++
  const older = entries.slice(0, first).map(([id, back]) => digestOf({ id, ...back }))
  const withheld = [...(record.withheld ?? []), ...older].slice(-maxWithheld)
  return {
    ...record,
    rolledBack: Object.fromEntries(entries.slice(first)),
    ...(withheld.length === 0 ? {} : { withheld }),
  }
}

const sizeOf = (entries: readonly (readonly [string, unknown])[]) =>
  Buffer.byteLength(JSON.stringify(Object.fromEntries(entries)))

/** Shortens a text to the maximum size as JSON. */
function cut(text: string): string {
  let end = Math.min(text.length, maxWhyBytes)
  while (Buffer.byteLength(JSON.stringify(text.slice(0, end))) > maxWhyBytes) end = Math.floor(end * 0.9)
  return text.slice(0, end)
}
