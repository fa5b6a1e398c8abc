// How long the version of a Pipeline that runs continues after its TenantPolicy has come to forbid it.

import type { Condition } from '../api/conditions.ts'
import type { Verdict } from '../compile/job.ts'

export interface GraceFacts {
  readonly accepted: Verdict
  /** The condition Accepted of the object, as it was before. */
  readonly before: Condition | undefined
  /** Digest of the rules under which the version that runs was accepted; undefined: it is not known, or nothing runs. */
  readonly ranUnder: string | undefined
  /** Digest of the rules that hold. */
  readonly rules: string
  readonly graceMs: number
  /** In milliseconds since the epoch. */
  readonly now: number
}

export class PolicyGrace {
  /** When a version that runs was first refused under rules that it was not accepted under, in milliseconds since the epoch, by key. */
  readonly #since = new Map<string, number>()

  /**
   * When the version that runs must end, in milliseconds since the epoch; undefined if it may continue. It may as long as the rules are
   * those under which it was accepted, whatever the newest version is refused for. Under other rules nothing shows that they allow it.
   */
  endOf(key: string, { accepted, before, ranUnder, rules, graceMs, now }: GraceFacts): number | undefined {
    if (accepted.status !== 'False' || ranUnder === undefined || ranUnder === rules) {
      this.#since.delete(key)
      return undefined
    }
    let since = this.#since.get(key)
    if (since === undefined) {
      // After a restart the time continues.
      const isForbidden = before?.status === 'False' && before.reason === 'ForbiddenOption'
      since = isForbidden && accepted.reason === 'ForbiddenOption' ? Date.parse(before.lastTransitionTime) : now
      this.#since.set(key, since)
    }
    return since + graceMs
  }

  delete(key: string): void {
    this.#since.delete(key)
  }
}

/** A verdict that says when the version that runs ends, or that it has ended. */
export function withEnd(verdict: Verdict, end: number, now: number): Verdict {
  const time = new Date(end).toISOString().replace(/\.\d+Z$/, 'Z')
  const said =
    now < end
      ? `The version that runs was accepted under earlier rules of the TenantPolicy and stops at ${time}.`
      : `The version that ran was accepted under earlier rules of the TenantPolicy; it was stopped at ${time}.`
  return { ...verdict, message: `${verdict.message.replace(/\.?$/, '.')} ${said}` }
}
