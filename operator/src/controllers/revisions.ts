// The content of an Agent's revisions: their pipelines, the differences between two, and the secret values that they need. Pure.

import type { Candidate, Revision } from '@penstock/agent/bundle'
import type { Delivered, KnownRevision } from '../fleet/state.ts'
import type { Fragment } from '../render/fragment.ts'

/** The pipelines of a revision; none if its content is not available. */
export function fragmentsIn(
  delivered: Pick<Delivered, 'revisions'>,
  revision: Revision | Candidate | undefined,
): ReadonlyMap<string, Fragment> {
  return (revision === undefined ? undefined : delivered.revisions.get(revision.rev)?.fragments) ?? new Map()
}

/** The revisions that agents run or should run. */
export function wantedIn({
  stable,
  candidate,
  later = [],
}: Pick<Delivered, 'stable' | 'candidate' | 'later'>): string[] {
  return [stable, candidate, ...later].flatMap((revision) => revision?.rev ?? [])
}

/** Keys of the secret values that these revisions refer to. */
export function valueKeys({ revisions }: Pick<Delivered, 'revisions'>, revs: readonly string[]): Set<string> {
  const keys = new Set<string>()
  for (const rev of revs) {
    for (const { secretRefs } of revisions.get(rev)?.fragments.values() ?? []) {
      for (const { key } of secretRefs) keys.add(key)
    }
  }
  return keys
}

/** Most pipelines are equal in all revisions, so each is stored once, as in the newest revision. */
export function shareFragments(revisions: Map<string, KnownRevision>): void {
  const known = new Map<string, Fragment>()
  for (const [rev, revision] of [...revisions].reverse()) {
    const fragments = new Map<string, Fragment>()
    for (const [id, fragment] of revision.fragments) {
      const same = known.get(id)
      const shared = same?.hash === fragment.hash && same.entry === fragment.entry ? same : fragment
      if (same === undefined) known.set(id, fragment)
      fragments.set(id, shared)
    }
    revisions.set(rev, { ...revision, fragments })
  }
}

/** Ids of the pipelines that differ between two revisions. */
export function changedIn(next: ReadonlyMap<string, Fragment>, before: ReadonlyMap<string, Fragment>): Set<string> {
  const changed = new Set<string>()
  for (const [id, fragment] of next) if (before.get(id)?.hash !== fragment.hash) changed.add(id)
  for (const id of before.keys()) if (!next.has(id)) changed.add(id)
  return changed
}

/** Number of unneeded revisions to remember, because an agent may load one and report it when the next already exists. */
const maxPassed = 64

/** Removes unneeded revisions; of the newest of them, keeps only the list of Pipelines. */
export function forgetRevisions(revisions: Map<string, KnownRevision>, kept: ReadonlySet<string>): void {
  const passed = [...revisions.keys()].filter((rev) => !kept.has(rev))
  for (const rev of passed.slice(0, -maxPassed)) revisions.delete(rev)
  for (const rev of passed.slice(-maxPassed)) {
    const known = revisions.get(rev)
    if (known !== undefined && known.shards.length > 0) revisions.set(rev, { ...known, shards: [] })
  }
}

/** A revision as people see it. */
export const shortRevision = (rev: string) => rev.slice(0, 12)
