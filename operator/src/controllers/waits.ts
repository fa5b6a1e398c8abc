// The reason why some agents do not run a Pipeline yet. Pure.

import type { Delivered } from '../fleet/state.ts'
import { fragmentsIn, shortRevision } from './revisions.ts'

/**
 * The rollout that keeps this content of a Pipeline from all agents; undefined where none does. Of a rollout of others nothing is said
 * but how far it is: their names and failures are not for this owner.
 */
export function waitText(
  agent: string,
  delivered: Pick<Delivered, 'stable' | 'candidate' | 'revisions' | 'why'>,
  isPaused: boolean,
  { id, hash }: { readonly id: string; readonly hash: string },
): string | undefined {
  const { stable, candidate, why } = delivered
  if (candidate === undefined || fragmentsIn(delivered, stable).get(id)?.hash === hash) return undefined
  const extent = `at ${candidate.percent}% of the agents${isPaused ? ', and paused' : ''}`
  if (fragmentsIn(delivered, candidate).get(id)?.hash !== hash)
    return `It waits for the rollout of revision ${shortRevision(candidate.rev)} on Agent ${agent}, which is ${extent}.`
  return `Its rollout on Agent ${agent} is ${extent}.${isPaused ? '' : ` ${why}`}`.trim()
}
