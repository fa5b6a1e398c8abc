// Adds new Pipelines to the revisions of a running rollout and removes deleted ones, lets changes join and leave it, without starting it
// again. Says what a rollout that begins now would try.

import type { Candidate } from '@penstock/agent/bundle'
import { groupOf, isTurnDue, isWaiting, nextGroup, stillAside } from '../../fleet/aside.ts'
import {
  type Apart,
  type Content,
  type Contents,
  changesOf,
  contentsOf,
  isSameContent,
  lacking,
} from '../../fleet/contents.ts'
import type { Delivered, KnownRevision, RolloutRecord } from '../../fleet/state.ts'
import { renderBundle } from '../../render/bundle.ts'
import type { Fragment } from '../../render/fragment.ts'
import { changedIn, fragmentsIn, shareFragments } from '../revisions.ts'
import { mayFollow, mayJoin, type RolloutPolicy } from '../rollout-plan.ts'
import { maxJoined, type RolloutState, rebase, triedOf } from './transition.ts'
import { maxTrials, moveUp, putView, trialsOf, viewOf } from './trials.ts'

export interface Start {
  /** The content that a rollout which begins now tries, or that the present one does where nothing new may begin. */
  readonly revision: KnownRevision
  /** The content that a further trial beside the others tries. */
  readonly next?: KnownRevision | undefined
  /** Whether there may be a further trial, as far as the present ones are concerned. */
  readonly maySplit?: boolean
  /** The group of changes that were set aside which is part of it. */
  readonly turn: string | undefined
  /** Whether changes that the candidate does not try would go on in its place: new ones, or any that are set aside. */
  readonly waits: 'new' | 'aside' | undefined
  /** The same for the last candidate. */
  readonly waitsLast?: 'new' | 'aside' | undefined
}

export interface Rebasing {
  readonly policy: RolloutPolicy
  /** When each Pipeline was made, by id. */
  readonly createdAt: ReadonlyMap<string, string>
  readonly now: number
  /** Ids of the Pipelines whose change leaves the candidates. */
  readonly leaves?: ReadonlySet<string> | undefined
  /** Whether these revisions fit into the Secrets together; true if absent. */
  readonly hasRoom?: (revisions: readonly KnownRevision[]) => boolean
}

interface Place {
  readonly revisions: Delivered['revisions']
  readonly view: RolloutState
  readonly isFirst: boolean
  readonly isLast: boolean
}

/** Renders the contents that the rollout continues with. */
export async function rebaseRollout(delivered: Delivered, bundle: KnownRevision, seen: Rebasing): Promise<Start> {
  const { leaves } = seen
  moveUp(delivered)
  const { stable } = delivered
  // Where the content is lost nothing is known of what agents run.
  if (stable === undefined || !delivered.revisions.has(stable.rev))
    return { revision: bundle, turn: undefined, waits: undefined }
  const apart = apartOf(delivered, bundle.fragments, fragmentsIn(delivered, stable))
  const rendered = (wanted: Content) => renderedOf(delivered, wanted, bundle, seen.createdAt)
  const place = (index: number) => {
    const isLast = index >= trialsOf(delivered).length - 1
    return { revisions: delivered.revisions, view: viewOf(delivered, index), isFirst: index === 0, isLast }
  }
  const { state, next, isOver } = await rebaseOne(place(0), bundle.fragments, apart, seen, rendered)
  putView(delivered, 0, state)
  if (isOver && (leaves === undefined || trialsOf(delivered).length > 0)) return rebaseRollout(delivered, bundle, seen)
  // The group that the first trial tries belongs to what the others are based on.
  const rest = {
    ...apart,
    aside: new Map([...apart.aside].filter(([id]) => !apart.turn.has(id))),
    turn: new Set<string>(),
  }
  for (let index = 1; index < trialsOf(delivered).length; ) {
    const desired = withoutFirstSteps(bundle.fragments, delivered, index)
    const later = await rebaseOne(place(index), desired, rest, seen, rendered)
    putView(delivered, index, later.state)
    if (!later.isOver) index++
  }
  const last = fragmentsIn(delivered, trialsOf(delivered).at(-1))
  const waitsIn = (content: Content) => waitsFor(bundle.fragments, content, apart, delivered)
  return {
    revision: await rendered(next.start),
    next: await nextTrial(delivered, withoutFirstSteps(bundle.fragments, delivered, Infinity), rest, seen, rendered),
    maySplit: maySplit(delivered, seen),
    turn: apart.group,
    waits: next.candidate === undefined ? undefined : waitsIn(next.candidate),
    waitsLast: next.candidate === undefined ? undefined : waitsIn(last),
  }
}

/**
 * The desired content without further changes of Pipelines whose change is in the first step of one of the first trials: agents that run the
 * further change would not show whether they can run the first one.
 */
function withoutFirstSteps(desired: Content, delivered: Delivered, trials: number): Content {
  const content = new Map(desired)
  for (const index of trialsOf(delivered).slice(0, trials).keys()) {
    const { stable, candidate, record } = viewOf(delivered, index)
    if ((record.step ?? 0) > 0) continue
    const tried = fragmentsIn(delivered, candidate)
    for (const id of changesOf(tried, fragmentsIn(delivered, stable)))
      if (content.has(id)) content.set(id, tried.get(id) as Fragment)
  }
  return content
}

type Rendered = (wanted: Content) => Promise<KnownRevision>

/** The contents of one trial, and of the stable revision if it is the first. */
async function rebaseOne(
  { revisions, view, isFirst, isLast }: Place,
  desired: Content,
  apart: Apart,
  seen: Rebasing,
  rendered: Rendered,
): Promise<{ readonly state: RolloutState; readonly next: Contents; readonly isOver: boolean }> {
  const { leaves, now } = seen
  const { stable, candidate, record } = view
  const runs = fragmentsIn({ revisions }, stable)
  const content = fragmentsIn({ revisions }, candidate)
  const contents = (joins: boolean) => {
    const mayReplace = seen.policy.paused || isFirstBake(record, seen)
    const trial = candidate && { content, isEverywhere: candidate.percent >= 100, mayJoin: joins, mayReplace, leaves }
    return contentsOf(desired, runs, trial, apart)
  }
  const isNew = (of: Content | undefined) => (id: string) => of?.get(id)?.hash !== content.get(id)?.hash
  let joins = leaves === undefined && isLast && isOpen(view, new Set(changesOf(content, runs)), seen)
  let next = contents(joins)
  const joined = joins ? changesOf(next.candidate ?? new Map(), next.stable).filter(isNew(next.candidate)) : []
  if (joined.length > 0 && !mayTake(record, joined, seen)) {
    joins = false
    next = contents(joins)
  }
  const nextStable = !isFirst || isSameContent(next.stable, runs) ? undefined : await rendered(next.stable)
  const isOver = next.candidate !== undefined && isSameContent(next.candidate, isFirst ? next.stable : runs)
  const hasNext = next.candidate !== undefined && !isOver && !isSameContent(next.candidate, content)
  const nextCandidate = hasNext && next.candidate !== undefined ? await rendered(next.candidate) : undefined
  const state = rebase(
    view,
    {
      ...(nextStable === undefined ? {} : { stable: nextStable }),
      ...(isOver ? { candidate: null } : nextCandidate === undefined ? {} : { candidate: nextCandidate }),
      added: next.added,
      joined: new Set(joins ? joined : []),
      tried: new Set(changesOf(next.candidate ?? new Map(), next.stable)),
    },
    now,
  )
  return { state, next, isOver }
}

function maySplit(delivered: Delivered, { leaves, now }: Rebasing): boolean {
  const { length } = trialsOf(delivered)
  const { aside, turn } = delivered.record
  return leaves === undefined && length > 0 && length < maxTrials && !isTurnDue(aside, turn, now)
}

/** The content of a further trial: changes that may not join the last one, and need not wait for it. */
async function nextTrial(
  delivered: Delivered,
  desired: Content,
  apart: Apart,
  seen: Rebasing,
  rendered: Rendered,
): Promise<KnownRevision | undefined> {
  const { policy, now, hasRoom = () => true } = seen
  if (!maySplit(delivered, seen)) return undefined
  const trials = trialsOf(delivered)
  const { revisions } = delivered
  const view = viewOf(delivered, trials.length - 1)
  const tried = triedOf(view)
  const content = fragmentsIn({ revisions }, view.candidate)
  const changed = new Set(changesOf(content, fragmentsIn({ revisions }, view.stable)))
  if (tried === undefined || !mayFollow(tried, policy, changed, now)) return undefined
  const { start } = contentsOf(desired, content, undefined, apart)
  if (changesOf(start, content).length === 0) return undefined
  const next = await rendered(start)
  const all = [delivered.stable, ...trials].flatMap((revision) => revisions.get(revision?.rev ?? '') ?? [])
  return hasRoom([...all, next]) ? next : undefined
}

/** Whether further changes may join the candidate now. */
function isOpen(
  state: Pick<RolloutState, 'candidate' | 'record'>,
  changed: ReadonlySet<string>,
  { policy, now }: Rebasing,
): boolean {
  const tried = triedOf(state)
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
  return isWaiting(record.aside, group) ? 'aside' : undefined
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
