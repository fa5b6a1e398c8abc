// Limits changes of condition messages that depend on many agents' reports, because numbers and causes alternate between reports. A
// new reason is written at once; another text for the same reason at most twice a minute.

import { type Condition, conditionOf, type Finding } from '../api/conditions.ts'

const heldMs = 30_000

export class HeldTexts {
  /** Since when an object has its current text. */
  readonly #since = new Map<string, number>()

  /** @param conditions the object's current conditions */
  finding(key: string, conditions: readonly Condition[] | undefined, found: Finding, now: number): Finding {
    const known = conditionOf(conditions, found.type)
    const isSame = known?.status === found.status && known.reason === found.reason
    if (known === undefined || !isSame || found.status !== 'False') {
      this.#since.delete(key)
      return found
    }
    if (known.message === found.message) return found
    const since = this.#since.get(key)
    if (since !== undefined && now - since >= heldMs) {
      this.#since.delete(key)
      return found
    }
    if (since === undefined) this.#since.set(key, now)
    return { ...found, message: known.message }
  }

  /** Forgets objects that no longer exist. */
  keep(has: (key: string) => boolean): void {
    for (const key of this.#since.keys()) if (!has(key)) this.#since.delete(key)
  }
}
