// Adds new Pipelines to the revisions of a running rollout and removes deleted ones, lets changes join and leave it, without starting it
// again. Says what a rollout that begins now would try.

import type { Candidate } from '@penstock/agent/bundle'
import { groupOf, nextGroup, stillAside } from '../../fleet/aside.ts'
import { type Apart, type Content, changesOf, contentsOf, isSameContent, lacking } from '../../fleet/contents.ts'
import type { Delivered, KnownRevision, RolloutRecord } from '../../fleet/state.ts'
import { renderBundle } from '../../render/bundle.ts'
import { changedIn, fragmentsIn, shareFragments } from '../revisions.ts'
import { mayJoin, type RolloutPolicy } from '../rollout-plan.ts'
import { maxJoined, rebase, triedOf } from './transition.ts'

export interface Start {
  /** The content that a rollout which begins now tries, or that the present one does where nothing new may begin. */
  readonly revision: KnownRevision
  /** The group of changes that were set aside which is part of it. */
  readonly turn: string | undefined
  /** Whether changes that the candidate does not try would go on in its place: new ones, or any that are set aside. */
  readonly waits: 'new' | 'aside' | undefined
}

export interface Rebasing {
  readonly policy: RolloutPolicy
  /** When each Pipeline was made, by id. */
  readonly createdAt: ReadonlyMap<string, string>
  readonly now: number
  /** Ids of the Pipelines whose change leaves the candidate. */
  readonly leaves?: ReadonlySet<string> | undefined
}

/** Renders the contents that the rollout continues with. */
export async function rebaseRollout(delivered: Delivered, bundle: KnownRevision, seen: Rebasing): Promise<Start> {
  const { createdAt, now, leaves } = seen
  const { stable, candidate } = delivered
  // Where the content is lost nothing is known of what agents run.
  if (stable === undefined || !delivered.revisions.has(stable.rev))
    return { revision: bundle, turn: undefined, waits: undefined }
  const runs = fragmentsIn(delivered, stable)
  const content = fragmentsIn(delivered, candidate)
  const apart = apartOf(delivered, bundle.fragments, runs)
  const contents = (joins: boolean) => {
    const mayReplace = seen.policy.paused || isFirstBake(delivered.record, seen)
    const trial = candidate && { content, isEverywhere: candidate.percent >= 100, mayJoin: joins, mayReplace, leaves }
    return contentsOf(bundle.fragments, runs, trial, apart)
  }
  const isNew = (of: Content | undefined) => (id: string) => of?.get(id)?.hash !== content.get(id)?.hash
  let joins = leaves === undefined && isOpen(delivered, new Set(changesOf(content, runs)), seen)
  let next = contents(joins)
  const joined = joins ? changesOf(next.candidate ?? new Map(), next.stable).filter(isNew(next.candidate)) : []
  if (joined.length > 0 && !mayTake(delivered.record, joined, seen)) {
    joins = false
    next = contents(joins)
  }
  const rendered = (wanted: Content) => renderedOf(delivered, wanted, bundle, createdAt)
  const nextStable = isSameContent(next.stable, runs) ? undefined : await rendered(next.stable)
  const isOver = next.candidate !== undefined && isSameContent(next.candidate, next.stable)
  const hasNext = next.candidate !== undefined && !isOver && !isSameContent(next.candidate, content)
  const nextCandidate = hasNext && next.candidate !== undefined ? await rendered(next.candidate) : undefined
  const state = rebase(
    delivered,
    {
      ...(nextStable === undefined ? {} : { stable: nextStable }),
      ...(isOver ? { candidate: null } : nextCandidate === undefined ? {} : { candidate: nextCandidate }),
      added: next.added,
      joined: new Set(joins ? joined : []),
      tried: new Set(changesOf(next.candidate ?? new Map(), next.stable)),
    },
    now,
  )
  Object.assign(delivered, state)
  if (isOver && leaves === undefined) return rebaseRollout(delivered, bundle, seen)
  const waits = next.candidate === undefined ? undefined : waitsFor(bundle.fragments, next.candidate, apart, delivered)
  return { revision: await rendered(next.start), turn: apart.group, waits }
}

/** Whether further changes may join the candidate now. */
function isOpen(delivered: Delivered, changed: ReadonlySet<string>, { policy, now }: Rebasing): boolean {
  const tried = triedOf(delivered)
  return tried !== undefined && mayJoin(tried, policy, changed, now)
}

/** Whether so many changes may join: if they are too many for a bake of their own, all begin theirs again, which has an end. */
function mayTake(record: RolloutRecord, ids: readonly string[], seen: Rebasing): boolean {
  return Object.keys(record.joined ?? {}).length + ids.length <= maxJoined || isFirstBake(record, seen)
}

/** A Pipeline that changes again and again begins its bake again only in this time. Otherwise nothing would ever pass it. */
function isFirstBake({ begun }: RolloutRecord, { policy, now }: Rebasing): boolean {
  return now - Date.parse(begun ?? '') < (policy.canary?.bakeMs ?? 0)
}

/** The changes that are set aside, and the group of them that is tried or comes next. */
function apartOf(
  delivered: Delivered,
  desired: Content,
  stable: Content,
): Apart & { readonly group: string | undefined } {
  const entries = stillAside(delivered.record.aside, desired)
  const { aside: _, ...record } = delivered.record
  delivered.record = Object.keys(entries).length === 0 ? record : { ...record, aside: entries }
  const aside = new Map(Object.entries(entries).map(([id, { hash }]) => [id, hash]))
  const hasNew = [...changedIn(desired, stable)].some((id) => !aside.has(id))
  const group = delivered.candidate === undefined ? nextGroup(delivered.record, hasNew) : delivered.record.turn
  return { aside, turn: groupOf(entries, group), group }
}

function waitsFor(
  desired: Content,
  candidate: Content,
  { aside, group }: ReturnType<typeof apartOf>,
  { record }: Delivered,
): Start['waits'] {
  for (const [id, { hash }] of desired) if (!aside.has(id) && candidate.get(id)?.hash !== hash) return 'new'
  const isReady = Object.values(record.aside ?? {}).some((entry) => entry.group !== group && entry.blocked !== true)
  return isReady ? 'aside' : undefined
}

/** A revision with this content: one that is known, or a new one. */
async function renderedOf(
  delivered: Delivered,
  wanted: Content,
  bundle: KnownRevision,
  createdAt: ReadonlyMap<string, string>,
): Promise<KnownRevision> {
  if (isSameContent(wanted, bundle.fragments)) {
    if (delivered.revisions.get(bundle.rev)?.shards.length !== bundle.shards.length) keepRevision(delivered, bundle)
    return bundle
  }
  for (const known of delivered.revisions.values())
    if (known.shards.length > 0 && isSameContent(wanted, known.fragments)) return known
  const revision = await renderBundle(
    [...wanted.values()].map((fragment) => ({ fragment, createdAt: createdAt.get(fragment.id) ?? '' })),
  )
  keepRevision(delivered, revision)
  return revision
}

export function keepRevision({ revisions }: Pick<Delivered, 'revisions'>, revision: KnownRevision): void {
  revisions.set(revision.rev, revision)
  shareFragments(revisions)
}

/** For the revision that an agent runs: the changed Pipelines that it does not run as the candidate has them. */
export function lacksIn(
  delivered: Pick<Delivered, 'revisions'>,
  candidate: Candidate | undefined,
  changed: ReadonlySet<string>,
): (revision: string | undefined) => ReadonlySet<string> {
  const tried = fragmentsIn(delivered, candidate)
  const known = new Map<string, ReadonlySet<string>>()
  return (revision) => {
    if (candidate === undefined || revision === candidate.rev) return new Set()
    let lacks = known.get(revision ?? '')
    if (lacks === undefined) {
      lacks = lacking(delivered.revisions.get(revision ?? '')?.fragments, tried, changed)
      known.set(revision ?? '', lacks)
    }
    return lacks
  }
}
