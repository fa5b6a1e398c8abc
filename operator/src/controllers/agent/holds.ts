// Whether an object of the cluster has the desired state. Pure.

import { quantityOf } from '../../api/quantity.ts'

/** Whether an object has all desired fields. Additional fields belong to other clients. */
export function holds(live: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(live) || live.length < wanted.length) return false
    const named = wanted.every((item) => typeof item === 'object' && item !== null && 'name' in item)
    return wanted.every((item, index) =>
      named
        ? live.some(
            (each) => (each as { name?: unknown })?.name === (item as { name: unknown }).name && holds(each, item),
          )
        : holds(live[index], item),
    )
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof live !== 'object' || live === null) return Object.keys(wanted).length === 0
    return Object.entries(wanted).every(
      ([key, value]) => value === undefined || holds((live as Record<string, unknown>)[key], value),
    )
  }
  return (
    live === wanted ||
    (live === undefined && (wanted === '' || wanted === false || wanted === 0)) ||
    isSameQuantity(live, wanted)
  )
}

/** The API server normalises quantities: 1000m of CPU become 1, 1024Mi become 1Gi. */
function isSameQuantity(live: unknown, wanted: unknown): boolean {
  if (typeof live !== 'string' || (typeof wanted !== 'string' && typeof wanted !== 'number')) return false
  const amount = quantityOf(live)
  return amount !== undefined && amount === quantityOf(wanted)
}
