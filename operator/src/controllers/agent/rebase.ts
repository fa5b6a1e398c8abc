// Adds new Pipelines to the revisions of a running rollout and removes deleted ones, without starting the rollout again.

import type { Candidate } from '@penstock/agent/bundle'
import { type Content, changesOf, contentsOf, hasTried, isSameContent } from '../../fleet/contents.ts'
import type { Delivered, KnownRevision } from '../../fleet/state.ts'
import { renderBundle } from '../../render/bundle.ts'
import { fragmentsIn, shareFragments } from '../revisions.ts'
import { mayJoin, type RolloutPolicy } from '../rollout-plan.ts'
import { rebase, triedOf } from './transition.ts'

/**
 * Renders the contents that the rollout continues with.
 * @param createdAt when each Pipeline was made, by id
 */
export async function rebaseRollout(
  delivered: Delivered,
  bundle: KnownRevision,
  policy: RolloutPolicy,
  createdAt: ReadonlyMap<string, string>,
  now: number,
): Promise<void> {
  const { stable, candidate } = delivered
  // Where the content is lost nothing is known of what agents run.
  if (stable === undefined || !delivered.revisions.has(stable.rev)) return
  const runs = fragmentsIn(delivered, stable)
  const content = fragmentsIn(delivered, candidate)
  const tried = triedOf(delivered)
  const joins = tried !== undefined && mayJoin(tried, policy, now)
  const trial = candidate && { content, isEverywhere: candidate.percent >= 100, mayJoin: joins }
  const next = contentsOf(bundle.fragments, runs, trial)
  const rendered = async (wanted: Content, before: Content): Promise<KnownRevision | undefined> => {
    if (isSameContent(wanted, before)) return undefined
    const revision = isSameContent(wanted, bundle.fragments)
      ? bundle
      : await renderBundle(
          [...wanted.values()].map((fragment) => ({ fragment, createdAt: createdAt.get(fragment.id) ?? '' })),
        )
    keepRevision(delivered, revision)
    return revision
  }
  const nextStable = await rendered(next.stable, runs)
  const isOver = next.candidate !== undefined && isSameContent(next.candidate, next.stable)
  const nextCandidate = next.candidate && !isOver ? await rendered(next.candidate, content) : undefined
  const changes = (of: Content) => changesOf(of, next.stable).map((id) => `${id} ${of.get(id)?.hash}`)
  const before = new Set(changes(content))
  const state = rebase(
    delivered,
    {
      ...(nextStable === undefined ? {} : { stable: nextStable }),
      ...(isOver ? { candidate: null } : nextCandidate === undefined ? {} : { candidate: nextCandidate }),
      added: next.added,
      hasJoined: joins && next.candidate !== undefined && changes(next.candidate).some((each) => !before.has(each)),
    },
    now,
  )
  Object.assign(delivered, state)
}

export function keepRevision({ revisions }: Pick<Delivered, 'revisions'>, revision: KnownRevision): void {
  revisions.set(revision.rev, revision)
  shareFragments(revisions)
}

/**
 * Shows the revisions that contain everything that the candidate tries as the candidate: their other content is no part of the trial.
 */
export function triedRevisions(
  delivered: Pick<Delivered, 'revisions'>,
  candidate: Candidate | undefined,
  changed: ReadonlySet<string>,
): (revision: string | undefined) => string | undefined {
  if (candidate === undefined) return (revision) => revision
  const tried = fragmentsIn(delivered, candidate)
  const known = new Map<string, string>()
  return (revision) => {
    if (revision === undefined || revision === candidate.rev) return revision
    let shown = known.get(revision)
    if (shown === undefined) {
      const runs = delivered.revisions.get(revision)?.fragments
      shown = hasTried(runs, tried, changed) ? candidate.rev : revision
      known.set(revision, shown)
    }
    return shown
  }
}
