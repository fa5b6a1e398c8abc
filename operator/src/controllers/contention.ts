// Limits the corrections of an object that another client keeps changing: two operators for the same objects would write without end, and
// restart all pods each time.

import type { KubeObject } from '../api/object.ts'
import { monotonicNow } from '../kube/clock.ts'

/** How long corrections are counted. */
export const contendedMs = 600_000
/** So many corrections within that time are a contention. */
const minCorrections = 5
/** Interval of corrections during a contention. */
const correctionMs = 120_000

export class Corrections {
  #times: readonly number[] = []

  add(now = monotonicNow()): void {
    this.#times = [...this.#recent(now), now]
  }

  isContended(now = monotonicNow()): boolean {
    return this.#recent(now).length >= minCorrections
  }

  /** Milliseconds until the next correction. */
  waitMs(now = monotonicNow()): number {
    return this.isContended(now) ? Math.max(0, (this.#times.at(-1) ?? 0) + correctionMs - now) : 0
  }

  /** When the last correction was; 0: never. */
  get last(): number {
    return this.#times.at(-1) ?? 0
  }

  #recent(now: number): readonly number[] {
    return this.#times.filter((at) => now - at < contendedMs)
  }
}

/** Changes of an object by others that were reverted. */
export interface Reverts {
  readonly corrections: Corrections
  /** The last client that made one; undefined: another operator of Penstock. */
  readonly manager: string | undefined
}

export const operatorManager = 'penstock-operator'

/** The last other client that changed an object; undefined if it uses our name. */
export function managerOf(live: KubeObject): string | undefined {
  const managers = (live.metadata.managedFields ?? []) as readonly {
    readonly manager?: string
    readonly subresource?: string
    readonly time?: string
  }[]
  const others = managers.filter(({ manager, subresource }) => manager !== operatorManager && subresource === undefined)
  const last = others.toSorted((left, right) => ((left.time ?? '') < (right.time ?? '') ? -1 : 1)).at(-1)
  return last === undefined ? undefined : (last.manager ?? 'unknown')
}
