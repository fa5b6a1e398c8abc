// How long the running version of a Pipeline continues after its TenantPolicy has forbidden it.

import type { Condition } from '../api/conditions.ts'
import type { Verdict } from '../compile/job.ts'

export interface GraceFacts {
  readonly accepted: Verdict
  /** The previous condition Accepted of the object. */
  readonly before: Condition | undefined
  /** Digest of the rules under which the running version was accepted; undefined if unknown, or if nothing runs. */
  readonly ranUnder: string | undefined
  /** Digest of the current rules. */
  readonly rules: string
  readonly graceMs: number
  /** In milliseconds since the epoch. */
  readonly now: number
}

export class PolicyGrace {
  /**
   * When a running version was first rejected under rules other than those that accepted it, in milliseconds since the epoch, by key.
   */
  readonly #since = new Map<string, number>()

  /**
   * When the running version must stop, in milliseconds since the epoch; undefined if it may continue. It may as long as the rules are
   * those under which it was accepted, whatever the reason for rejecting the newest version. Under other rules it is unknown whether
   * they allow it.
   */
  endOf(key: string, { accepted, before, ranUnder, rules, graceMs, now }: GraceFacts): number | undefined {
    if (accepted.status !== 'False' || ranUnder === undefined || ranUnder === rules) {
      this.#since.delete(key)
      return undefined
    }
    let since = this.#since.get(key)
    if (since === undefined) {
      // The time continues after a restart.
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

/** A result that states when the running version will stop, or that it has stopped. */
export function withEnd(verdict: Verdict, end: number, now: number): Verdict {
  const time = new Date(end).toISOString().replace(/\.\d+Z$/, 'Z')
  const notice =
    now < end
      ? `The running version was accepted under earlier rules of the TenantPolicy and stops at ${time}.`
      : `The last running version was accepted under earlier rules of the TenantPolicy; it was stopped at ${time}.`
  return { ...verdict, message: `${verdict.message.replace(/\.?$/, '.')} ${notice}` }
}
