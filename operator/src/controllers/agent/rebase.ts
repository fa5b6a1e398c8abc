// Updates the revisions of a running rollout without restarting it: adds new Pipelines, removes deleted ones, and lets changes join or
// leave. It also determines the content that a rollout would try if it began now.

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
  /** The content that a rollout would try if it began now; the content of the current trial if no trial may begin. */
  readonly revision: KnownRevision
  /** The content for an additional trial that runs beside the others. */
  readonly next?: KnownRevision | undefined
  /** Whether the current trials allow an additional one. */
  readonly maySplit?: boolean
  /** The group of set-aside changes that `revision` contains. */
  readonly turn: string | undefined
  /** Which changes could continue in place of the candidate: new ones, or only those that were set aside. */
  readonly waits: 'new' | 'aside' | undefined
  /** The same for the candidate of the last trial. */
  readonly waitsLast?: 'new' | 'aside' | undefined
}

export interface Rebasing {
  readonly policy: RolloutPolicy
  /** Creation time of each Pipeline, by id. */
  readonly createdAt: ReadonlyMap<string, string>
  readonly now: number
  /** Ids of the Pipelines whose change must be removed from the candidates. */
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
  // If the stable content is lost, the content that agents run is unknown.
  if (stable === undefined || !delivered.revisions.has(stable.rev))
    return { revision: bundle, turn: undefined, waits: undefined }
  const apart = apartOf(delivered, bundle.fragments, fragmentsIn(delivered, stable), seen.now)
  const rendered = (wanted: Content) => renderedOf(delivered, wanted, bundle, seen.createdAt)
  const place = (index: number) => {
    const isLast = index >= trialsOf(delivered).length - 1
    return { revisions: delivered.revisions, view: viewOf(delivered, index), isFirst: index === 0, isLast }
  }
  const { state, next, isOver } = await rebaseOne(place(0), bundle.fragments, apart, seen, rendered)
  putView(delivered, 0, state)
  if (isOver && (leaves === undefined || trialsOf(delivered).length > 0)) return rebaseRollout(delivered, bundle, seen)
  // The other trials are based on the first one, so they already contain its group.
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
 * The desired content, but without a second change of a Pipeline whose first change is still in the first step of an earlier trial. Agents
 * that run the second change would not show whether they can run the first one.
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

/** Updates the content of one trial; for the first trial, also that of the stable revision. */
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

/**
 * The content for an additional trial: changes that can no longer join the last trial, and need not wait for its end.
 */
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

/**
 * Whether these changes may join. If there are too many for separate bake times, all changes start theirs again, which is only
 * allowed for a limited time.
 */
function mayTake(record: RolloutRecord, ids: readonly string[], seen: Rebasing): boolean {
  return Object.keys(record.joined ?? {}).length + ids.length <= maxJoined || isFirstBake(record, seen)
}

/**
 * A Pipeline that keeps changing may restart its bake time only during the first bake time of the trial. Otherwise the trial
 * would never end.
 */
function isFirstBake({ begun }: RolloutRecord, { policy, now }: Rebasing): boolean {
  return now - Date.parse(begun ?? '') < (policy.canary?.bakeMs ?? 0)
}

/** The set-aside changes, and the group of them that is being tried or comes next. */
function apartOf(
  delivered: Delivered,
  desired: Content,
  stable: Content,
  now: number,
): Apart & { readonly group: string | undefined } {
  const entries = stillAside(delivered.record.aside, desired)
  const { aside: _, ...record } = delivered.record
  delivered.record = Object.keys(entries).length === 0 ? record : { ...record, aside: entries }
  const aside = new Map(Object.entries(entries).map(([id, { hash }]) => [id, hash]))
  const hasNew = [...changedIn(desired, stable)].some((id) => !aside.has(id))
  const group = delivered.candidate === undefined ? nextGroup(delivered.record, hasNew, now) : delivered.record.turn
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

/** A revision with this content: a known one, or else a new one. */
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

/**
 * Returns a function that finds, for the revision of an agent, the changed Pipelines that the agent does not yet run in
 * the candidate's version.
 */
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
