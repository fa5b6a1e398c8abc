// Whether an object of the cluster already equals the result of a server-side apply, so that no write is needed. Pure.

import type { KubeObject } from '../api/object.ts'
import { holds } from './agent/holds.ts'

interface ManagedFields {
  readonly manager?: string
  readonly operation?: string
  readonly subresource?: string
  readonly apiVersion?: string
  readonly fieldsV1?: unknown
}

/** Whether all desired fields exist, and the manager owns no field that is no longer desired. */
export function isApplied(live: KubeObject, wanted: KubeObject, manager: string): boolean {
  const known = ((live.metadata.managedFields ?? []) as readonly ManagedFields[]).find(
    (each) => each.manager === manager && each.operation === 'Apply' && !each.subresource,
  )
  return known?.apiVersion === wanted.apiVersion && holds(live, wanted) && areWanted(known.fieldsV1, wanted)
}

/**
 * Whether a value contains every owned field. Owned fields are in the API server's notation: `f:` a member, `k:` a list item by its
 * keys, `v:` an item by its value, `i:` by its index, and `.` the value itself.
 */
function areWanted(owned: unknown, wanted: unknown): boolean {
  return Object.entries((owned ?? {}) as Readonly<Record<string, unknown>>).every(([key, inner]) => {
    if (key === '.') return true
    const found = memberOf(key.slice(0, 2), key.slice(2), wanted)
    return found !== undefined && areWanted(inner, found)
  })
}

function memberOf(sort: string, text: string, wanted: unknown): unknown {
  if (typeof wanted !== 'object' || wanted === null) return undefined
  if (sort === 'f:') return (wanted as Readonly<Record<string, unknown>>)[text]
  if (!Array.isArray(wanted)) return undefined
  const asked: unknown = sort === 'i:' ? undefined : JSON.parse(text)
  if (sort === 'k:') return wanted.find((item) => holds(item, asked))
  if (sort === 'v:') return wanted.find((item) => item === asked)
  return wanted[Number(text)]
}
