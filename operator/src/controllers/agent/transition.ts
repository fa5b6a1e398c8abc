// The next state of an Agent's rollout after one decision, with the events that report it. Pure: `rollout-plan.ts` decides, this file
// applies the decision to a copy of the state, and the controller assigns the result once.

import type { Candidate, Revision } from '@penstock/agent/bundle'
import { counted } from '@penstock/agent/program'
import { blockedAside, groupOf, halved, isBlocked, withoutAside } from '../../fleet/aside.ts'
import { shortRetry, withRolledBack } from '../../fleet/rolled-back.ts'
import type { Delivered, KnownRevision, RolloutRecord } from '../../fleet/state.ts'
import { remembered, undoneOf } from '../../fleet/undo.ts'
import type { Fragment } from '../../render/fragment.ts'
import { shortRevision } from '../revisions.ts'
import { type Decision, decide, type Observation, type TriedRevision } from '../rollout-plan.ts'

export type RolloutState = Readonly<Pick<Delivered, 'stable' | 'candidate' | 'later' | 'record' | 'why'>>

export interface RolloutEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

/** The observation without the members that the state contains. */
export interface Seen extends Omit<Observation, 'stable' | 'candidate' | 'desired' | 'added'> {
  /** The content that a rollout would try if it began now: the desired content without the set-aside changes. */
  readonly bundle: KnownRevision
  /** The group of set-aside changes that `bundle` contains. */
  readonly turn?: string | undefined
  /** The pipelines of the candidate. */
  readonly tried: ReadonlyMap<string, Fragment>
  /** The `retry` annotation of a Pipeline. */
  retryOf(id: string): string | undefined
}

export interface Transition {
  readonly state: RolloutState
  readonly events: readonly RolloutEvent[]
  /** Delay after which time alone may change the decision. */
  readonly recheckMs: number | undefined
  /** Whether a new candidate has started, so that restarts and waits count from zero. */
  readonly isStarted: boolean
  /**
   * Ids of the Pipelines whose change leaves the candidate. The caller updates the contents before it writes anything.
   */
  readonly leaves?: ReadonlySet<string> | undefined
}

/** Silent agents are only noticed as time passes, so a rollout is checked at least this often. */
const maxRecheckMs = 10_000

/** The state after the next decision about a rollout. */
export function advance(before: RolloutState, seen: Seen): Transition {
  const { stable, record } = before
  const decision = decide({
    ...seen,
    stable: stable?.rev,
    candidate: triedOf(before),
    desired: seen.bundle.rev,
    added: new Set(Object.keys(record.added ?? {})),
  })
  return carryOut(decision, { ...before, why: '' }, seen)
}

/** The candidate as the plan sees it. */
export function triedOf({ candidate, record }: Pick<RolloutState, 'candidate' | 'record'>): TriedRevision | undefined {
  if (candidate === undefined) return undefined
  const { rev, percent, salt, also } = candidate
  const { step = 0, since, begun, stepped, joined = {}, aside, turn } = record
  const at = (time: string | undefined) => Date.parse(time ?? '') || undefined
  const clocks = Object.entries(joined).map(
    ([id, each]) => [id, { at: at(each.at) ?? 0, since: at(each.since) }] as const,
  )
  return {
    ...{
      rev,
      percent,
      salt,
      also,
      step,
      since: at(since),
      begun: at(begun),
      stepped: at(stepped),
      joined: new Map(clocks),
    },
    ...(turn === undefined ? {} : { turn: { group: turn, isBlocked: isBlocked(aside, turn) } }),
  }
}

/** How long a Pipeline that all agents received at once is observed. */
const addedMs = 300_000
/** The number is limited because the record is stored in an annotation. */
const maxAdded = 500

/** Adds Pipelines that all agents receive without a trial, and removes those that need no more observation. */
function withAdded(record: RolloutRecord, ids: readonly string[], now: number): RolloutRecord {
  const { added = {}, ...rest } = record
  const at = new Date(now).toISOString()
  const recent = Object.entries(added).filter(([, time]) => now - Date.parse(time) < addedMs)
  const all = [...recent, ...ids.map((id) => [id, at] as const)].slice(-maxAdded)
  return all.length === 0 ? rest : { ...rest, added: Object.fromEntries(all) }
}

/** Rendered content after Pipelines were added or removed; unchanged content is absent. */
export interface Rebased {
  readonly stable?: KnownRevision
  /** Null if nothing is left to try. */
  readonly candidate?: KnownRevision | null
  readonly added: readonly string[]
  /**
   * Ids of the Pipelines whose change has joined the trial. If there are too many, all changes start their bake time again.
   */
  readonly joined: ReadonlySet<string>
  /** Ids of the Pipelines whose change is being tried. */
  readonly tried: ReadonlySet<string>
}

/** Maximum number of changes with a separate bake time. */
export const maxJoined = 200

/** The state with these contents; the progress of the rollout stays the same. */
export function rebase(before: RolloutState, rebased: Rebased, now: number): RolloutState {
  let record = withAdded(before.record, rebased.added, now)
  let { stable, candidate } = before
  if (rebased.stable !== undefined) {
    const { rev, shards } = rebased.stable
    stable = { rev, shards }
    record = { ...record, history: remember(record, 'RolledOut', rev, now) }
  }
  if (rebased.candidate === null) {
    candidate = undefined
    record = withoutStep(record)
  } else if (rebased.candidate !== undefined && candidate !== undefined) {
    const { rev, shards } = rebased.candidate
    candidate = { ...candidate, rev, shards }
    record = withJoined(record, rebased, now)
  }
  return { ...before, stable, candidate, record }
}

function carryOut(decision: Decision, before: RolloutState, seen: Seen): Transition {
  const { candidate, record } = before
  const { bundle, policy } = seen
  const revision: Revision = { rev: bundle.rev, shards: bundle.shards }
  const to = (state: Partial<RolloutState>, recheckMs?: number, events: readonly RolloutEvent[] = []): Transition => ({
    state: { ...before, ...state },
    events,
    recheckMs,
    isStarted: decision.action === 'start',
  })
  switch (decision.action) {
    case 'promote':
      return promoted({ ...before, record: withoutTurn(record, seen.turn) }, seen)
    case 'start': {
      const { percent, salt } = decision
      const message = `Revision ${shortRevision(bundle.rev)} goes to ${percent}% of the agents.`
      return to(
        {
          candidate: { ...revision, percent, salt },
          // The new candidate contains the changes of all later ones.
          ...(before.later === undefined ? {} : { later: [] }),
          record: begunAt(withoutLater(record), seen),
        },
        policy.canary?.bakeMs ?? policy.step.bakeMs,
        [{ type: 'Normal', reason: 'RolloutStarted', message }],
      )
    }
    case 'step': {
      if (candidate === undefined) return to({})
      const next: Candidate = { ...candidate, percent: decision.percent }
      const step = { step: (record.step ?? 0) + 1, stepped: new Date(seen.now).toISOString() }
      const stepped = to(
        { candidate: next, record: { ...withoutStep(record), ...begunOf(record), ...step } },
        policy.step.bakeMs,
      )
      return { ...stepped, leaves: decision.leaves }
    }
    case 'watch':
      return to({ record: watched(record, decision, seen.now) }, decision.waitMs)
    case 'settle': {
      const stable = candidate === undefined ? before.stable : { rev: candidate.rev, shards: candidate.shards }
      const history = remember(record, 'RolledOut', candidate?.rev ?? bundle.rev, seen.now)
      const arrived = seen.triesArrivals === true ? [...seen.changed].filter((id) => seen.tried.has(id)) : []
      const settled = withAdded(withoutStep(withoutTurn(record, seen.turn)), arrived, seen.now)
      return to({ stable, candidate: undefined, record: { ...settled, history } }, 0)
    }
    case 'drop':
      return to({ candidate: undefined, record: withoutStep(record) })
    case 'aside':
      return setAside(decision, before, seen)
    case 'abort':
      return rolledBack(decision, before, seen)
    case 'none': {
      const isOver = candidate === undefined && decision.waitMs === undefined
      const recheckMs = isOver ? undefined : Math.min(decision.waitMs ?? maxRecheckMs, maxRecheckMs)
      return to({ why: decision.why }, recheckMs)
    }
  }
}

function promoted(before: RolloutState, { bundle, now }: Seen): Transition {
  const record = withoutStep(before.record)
  const state = { ...before, stable: { rev: bundle.rev, shards: bundle.shards }, candidate: undefined }
  if (before.stable?.rev === bundle.rev)
    return { state: { ...state, record }, events: [], recheckMs: undefined, isStarted: false }
  const history = remember(before.record, 'RolledOut', bundle.rev, now)
  const message = `Revision ${shortRevision(bundle.rev)} is rolled out.`
  return {
    state: { ...state, record: { ...record, history } },
    events: [{ type: 'Normal', reason: 'RolledOut', message }],
    recheckMs: undefined,
    isStarted: false,
  }
}

function rolledBack(
  { culprits, why, reasons }: Extract<Decision, { action: 'abort' }>,
  before: RolloutState,
  { tried, changed, bundle, now, retryOf }: Seen,
): Transition {
  const { candidate, record } = before
  const versions = [...culprits].flatMap((id) => {
    const hash = tried.get(id)?.hash
    return hash === undefined ? [] : [{ id, hash, retry: shortRetry(retryOf(id)), why: reasons?.get(id) ?? why }]
  })
  const rev = candidate?.rev ?? bundle.rev
  const history = remember(record, 'RolledBack', rev, now)
  const continues = [...changed].some((id) => !culprits.has(id))
  const what = continues ? `A part of revision ${shortRevision(rev)}` : `Revision ${shortRevision(rev)}`
  const rest = withoutAside(without(continues ? record : withoutStep(record), culprits), culprits)
  const kept = withRolledBack(rest, versions)
  return {
    state: { ...before, candidate: continues ? candidate : undefined, record: { ...kept, history } },
    events: [{ type: 'Warning', reason: 'RolledBack', message: `${what} is rolled back: ${why}.` }],
    recheckMs: 0,
    // Restarts and failures because of the rolled-back changes must not count against the others.
    isStarted: continues,
    leaves: culprits,
  }
}

function setAside(
  { ids, halved: isHalved, doubt, why }: Extract<Decision, { action: 'aside' }>,
  before: RolloutState,
  { tried, now }: Seen,
): Transition {
  const { candidate, record } = before
  const hashOf = (id: string) => tried.get(id)?.hash
  const { joined = {} } = record
  // The changes that joined last are the most suspicious. The names of Pipelines give no hint.
  const byTime = [...ids].sort((left, right) => ((joined[left]?.at ?? '') < (joined[right]?.at ?? '') ? -1 : 1))
  const aside = isHalved
    ? halved(record, byTime, hashOf, { why, now, salt: candidate?.salt, doubt })
    : blockedAside(record, ids, hashOf, { why, now })
  const rest = without({ ...record, aside }, isHalved ? ids : new Set())
  const { joined: _, since: __, ...others } = rest
  const begun = new Date(now).toISOString()
  const isCanary = (record.step ?? 0) === 0
  const what = `${counted(ids.size, 'change')} of revision ${shortRevision(candidate?.rev ?? '')}`
  const message = `${what} ${ids.size === 1 ? 'is' : 'are'} set aside: ${why}.`
  return {
    // These changes kept the agents from loading the others, so the time of the others starts again.
    state: { ...before, record: isCanary ? { ...others, begun } : { ...others, stepped: begun } },
    events: [{ type: 'Warning', reason: 'SetAside', message }],
    recheckMs: 0,
    isStarted: true,
    leaves: ids,
  }
}

export interface Return {
  readonly state: RolloutState
  readonly events: readonly RolloutEvent[]
  /** The active earlier revision; undefined: the rollout continues. */
  readonly revision: KnownRevision | undefined
}

/**
 * The state after a user requested an earlier revision: it becomes active on all agents, because all have run it before.
 * @param request the annotation with the request @param wanted revision to run without the request
 */
export function goBack(
  before: RolloutState,
  revisions: ReadonlyMap<string, KnownRevision>,
  request: string | undefined,
  wanted: string,
  at: string,
): Return {
  const { undone: earlier, ...rest } = before.record
  const undone = undoneOf(before.record, request, wanted, (rev) => revisions.has(rev))
  const record = undone === undefined ? rest : { ...rest, undone }
  if (undone?.to === undefined) {
    const isNew = undone !== undefined && earlier?.request !== request
    const message = `There is no earlier revision: "${request}".`
    const events: RolloutEvent[] = isNew ? [{ type: 'Warning', reason: 'UndoFailed', message }] : []
    return { state: { ...before, record }, events, revision: undefined }
  }
  const revision = revisions.get(undone.to)
  if (revision === undefined) {
    // Its content is lost, so the desired revision runs instead.
    const over = { ...record, undone: { request: undone.request } }
    return { state: { ...before, record: over }, events: [], revision: undefined }
  }
  const { rev, shards } = revision
  if (before.stable?.rev === rev && before.candidate === undefined)
    return { state: { ...before, record, why: '' }, events: [], revision }
  const history = remembered(record.history, { revision: rev, at, result: 'Undone' })
  const message = `Revision ${shortRevision(rev)} runs again instead of ${shortRevision(wanted)}.`
  return {
    state: {
      ...{ stable: { rev, shards }, candidate: undefined, later: [], why: '' },
      record: { ...withoutStep(withoutLater(withoutTurns(record))), history },
    },
    events: [{ type: 'Normal', reason: 'Undone', message }],
    revision,
  }
}

function remember(record: RolloutRecord, result: string, revision: string, now: number) {
  return remembered(record.history, { revision, at: new Date(now).toISOString(), result })
}

/** The record without entries about rolled-back Pipelines. */
function without({ added = {}, ...record }: RolloutRecord, culprits: ReadonlySet<string>): RolloutRecord {
  const left = Object.entries(added).filter(([id]) => !culprits.has(id))
  return left.length === 0 ? record : { ...record, added: Object.fromEntries(left) }
}

const begunOf = ({ begun }: RolloutRecord) => (begun === undefined ? {} : { begun })

function begunAt(record: RolloutRecord, { now, turn }: Seen): RolloutRecord {
  const { turn: _, ...rest } = withoutStep(record)
  return { ...rest, step: 0, begun: new Date(now).toISOString(), ...(turn === undefined ? {} : { turn }) }
}

function withoutStep(record: RolloutRecord): RolloutRecord {
  const { step: _, since: __, begun: ___, stepped: ____, joined: _____, ...rest } = record
  return rest
}

function withoutLater({ later: _, ...rest }: RolloutRecord): RolloutRecord {
  return rest
}

/** The record after the changes of a group have become active. */
const withoutTurn = (record: RolloutRecord, turn: string | undefined) =>
  withoutAside(record, groupOf(record.aside, turn))

/** The record without any set-aside changes. */
function withoutTurns({ aside: _, turn: __, ...record }: RolloutRecord): RolloutRecord {
  return record
}

/** Adds the times of changes that joined the trial, and removes those of changes that are no longer tried. */
function withJoined(record: RolloutRecord, { joined: ids, tried }: Rebased, now: number): RolloutRecord {
  const { joined = {}, ...rest } = record
  const at = new Date(now).toISOString()
  const kept = Object.entries(joined).filter(([id]) => tried.has(id) && !ids.has(id))
  if (kept.length + ids.size > maxJoined) {
    const { since: _, ...others } = rest
    return others
  }
  const all = [...kept, ...[...ids].map((id) => [id, { at }] as const)]
  return all.length === 0 ? rest : { ...rest, joined: Object.fromEntries(all) }
}

/** Records the start of the bake time. */
function watched(record: RolloutRecord, decision: Extract<Decision, { action: 'watch' }>, now: number): RolloutRecord {
  const since = new Date(now).toISOString()
  const { joined = {} } = record
  const loaded = new Set(decision.joined ?? [])
  const all = Object.entries(joined).map(([id, each]) => [id, loaded.has(id) ? { ...each, since } : each] as const)
  return {
    ...record,
    ...(decision.only === true ? {} : { since }),
    ...(all.length === 0 ? {} : { joined: Object.fromEntries(all) }),
  }
}
