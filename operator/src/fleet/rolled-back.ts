// Contents that were rolled back, which are not tried again before they or their `retry` change. The record is an annotation, so only the
// newest entries keep their reason; older ones become digests. Pure.

import { sha256 } from '@penstock/agent/bundle'
import type { RolloutRecord } from './state.ts'

export type RolledBack = RolloutRecord['rolledBack']

/** The version of a Pipeline that a rollout tried. */
export interface TriedVersion {
  readonly id: string
  readonly hash: string
  readonly retry?: string | undefined
}

/** Entries with a reason. */
export const maxRolledBack = 100
export const maxRolledBackBytes = 40_000
/** Entries without one: the oldest are forgotten, and may be tried again. */
export const maxWithheld = 2000
const maxWhyBytes = 600
const maxRetry = 64

/** A user may set the annotation to any text. */
export const shortRetry = (retry: string | undefined): string | undefined =>
  retry === undefined || retry.length <= maxRetry ? retry : sha256(retry).slice(0, maxRetry)

export const digestOf = ({ id, hash, retry }: TriedVersion): string =>
  Buffer.from(sha256(`${id} ${hash} ${retry ?? ''}`), 'hex')
    .toString('base64url')
    .slice(0, 11)

/** The record with these versions, of which each has its reason. */
export function withRolledBack(
  record: RolloutRecord,
  versions: readonly (TriedVersion & { readonly why: string })[],
): RolloutRecord {
  const all = new Map(Object.entries(record.rolledBack))
  for (const { id, hash, retry, why } of versions) {
    // The newest come last.
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

/** A text of at most so many bytes as JSON. */
function cut(text: string): string {
  let end = Math.min(text.length, maxWhyBytes)
  while (Buffer.byteLength(JSON.stringify(text.slice(0, end))) > maxWhyBytes) end = Math.floor(end * 0.9)
  return text.slice(0, end)
}
