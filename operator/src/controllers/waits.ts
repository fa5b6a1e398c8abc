// The reason why some agents do not run a Pipeline yet. Pure.

import type { Delivered } from '../fleet/state.ts'
import { fragmentsIn, shortRevision } from './revisions.ts'

/**
 * The rollout that delays this content of a Pipeline for some agents; undefined if there is none. For other owners' rollouts only the
 * progress is shown, because their names and failures are not for this owner.
 */
export function waitText(
  agent: string,
  delivered: Pick<Delivered, 'stable' | 'candidate' | 'later' | 'record' | 'revisions' | 'why'>,
  isPaused: boolean,
  { id, hash }: { readonly id: string; readonly hash: string },
): string | undefined {
  const { stable, candidate, later = [], record } = delivered
  const trials = candidate === undefined ? [] : [candidate, ...later]
  const at = trials.findIndex((trial) => fragmentsIn(delivered, trial).get(id)?.hash === hash)
  const isTried = at >= 0
  const aside = record.aside?.[id]
  // The Pipeline may be new, so that all agents received it at once.
  if (!isTried && aside?.hash === hash)
    return `It was set aside on Agent ${agent} and will be tried again separately: ${aside.why}.`
  if (candidate === undefined || fragmentsIn(delivered, stable).get(id)?.hash === hash) return undefined
  const { percent } = trials[at] ?? candidate
  const extent = `at ${percent}% of the agents${isPaused ? ', and paused' : ''}`
  if (!isTried)
    return `It waits for the rollout of revision ${shortRevision(candidate.rev)} on Agent ${agent}, which is ${extent}.`
  return `Its rollout on Agent ${agent} is ${extent}.${isPaused ? '' : ` ${ownWhy(delivered, id, at)}`}`.trim()
}

/** Why it makes no progress. If changes have joined it, they may wait for something else. */
function ownWhy({ record, why }: Pick<Delivered, 'record' | 'why'>, id: string, trial: number): string {
  const { joined = {}, since } = (trial === 0 ? record : record.later?.[trial - 1]) ?? {}
  if (trial === 0 && Object.keys(joined).length === 0) return why
  const own = joined[id] ?? { since }
  return own.since === undefined ? 'Its first agents load it.' : 'It is being watched.'
}
