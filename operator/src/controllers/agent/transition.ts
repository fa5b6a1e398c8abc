// The next state of an Agent's rollout after one decision, with the events that report it. Pure: `rollout-plan.ts` decides, this file
// carries the decision out on a copy of the state, and the controller assigns the result once.

import type { Candidate, Revision } from '@penstock/agent/bundle'
import type { Delivered, KnownRevision, RolloutRecord } from '../../fleet/state.ts'
import { remembered, undoneOf } from '../../fleet/undo.ts'
import type { Fragment } from '../../render/fragment.ts'
import { shortRevision } from '../revisions.ts'
import { type AgentNode, type Decision, decide, type RolloutPolicy, type TriedRevision } from '../rollout-plan.ts'

export type RolloutState = Readonly<Pick<Delivered, 'stable' | 'candidate' | 'record' | 'why'>>

export interface RolloutEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

export interface Seen {
  readonly now: number
  readonly policy: RolloutPolicy
  /** The content that must run. */
  readonly bundle: KnownRevision
  /** The pipelines of the candidate. */
  readonly tried: ReadonlyMap<string, Fragment>
  /** Ids of the pipelines that differ between the candidate and the stable revision. */
  readonly changed: ReadonlySet<string>
  readonly worse: ReadonlySet<string>
  /** Whether pipelines only come or go between the stable revision and what is to run, and between it and the candidate. */
  readonly isArrival?: boolean
  readonly triesArrivals?: boolean
  readonly nodes: readonly AgentNode[]
  /** The `retry` annotation of a Pipeline. */
  retryOf(id: string): string | undefined
}

export interface Transition {
  readonly state: RolloutState
  readonly events: readonly RolloutEvent[]
  /** After how long time alone may change the decision. */
  readonly recheckMs: number | undefined
  /** Whether a new candidate has started, so restarts and waits count from zero. */
  readonly isStarted: boolean
}

/** An agent that falls silent is noticed by time alone, so a rollout is looked at this often at least. */
const maxRecheckMs = 10_000

/** The state after the next decision about a rollout. */
export function advance(before: RolloutState, seen: Seen): Transition {
  const { stable, candidate, record } = before
  const decision = decide({
    now: seen.now,
    policy: seen.policy,
    stable: stable?.rev,
    candidate: triedOf(before),
    added: new Set(Object.keys(record.added ?? {})),
    ...(seen.isArrival === undefined ? {} : { isArrival: seen.isArrival }),
    ...(seen.triesArrivals === undefined ? {} : { triesArrivals: seen.triesArrivals }),
    desired: seen.bundle.rev,
    changed: seen.changed,
    worse: seen.worse,
    nodes: seen.nodes,
  })
  return carryOut(decision, { stable, candidate, record, why: '' }, seen)
}

/** The candidate as the plan sees it. */
export function triedOf({ candidate, record }: Pick<RolloutState, 'candidate' | 'record'>): TriedRevision | undefined {
  if (candidate === undefined) return undefined
  const { rev, percent, salt } = candidate
  const at = (time: string | undefined) => Date.parse(time ?? '') || undefined
  return { rev, percent, salt, step: record.step ?? 0, since: at(record.since), begun: at(record.begun) }
}

/** For this long, a Pipeline that all agents have got at once is under suspicion. */
const addedMs = 300_000
/** The record is an annotation. */
const maxAdded = 500

/** The record with Pipelines that all agents get without a trial, and without those that have proved themselves. */
function withAdded(record: RolloutRecord, ids: readonly string[], now: number): RolloutRecord {
  const { added = {}, ...rest } = record
  const at = new Date(now).toISOString()
  const recent = Object.entries(added).filter(([, time]) => now - Date.parse(time) < addedMs)
  const all = [...recent, ...ids.map((id) => [id, at] as const)].slice(-maxAdded)
  return all.length === 0 ? rest : { ...rest, added: Object.fromEntries(all) }
}

/** Contents after Pipelines have come and gone, rendered; unchanged ones are absent. */
export interface Rebased {
  readonly stable?: KnownRevision
  /** Null: nothing is left to try. */
  readonly candidate?: KnownRevision | null
  readonly added: readonly string[]
  /** Whether changes have joined those that are tried. */
  readonly hasJoined: boolean
}

/** The state with these contents: the rollout stays as far as it is. */
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
    if (rebased.hasJoined) {
      const { since: _, ...others } = record
      record = others
    }
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
      return promoted(before, seen)
    case 'start': {
      const { percent, salt } = decision
      const message = `Revision ${shortRevision(bundle.rev)} goes to ${percent}% of the agents.`
      return to(
        { candidate: { ...revision, percent, salt }, record: begunAt(record, seen.now) },
        policy.canary?.bakeMs ?? policy.step.bakeMs,
        [{ type: 'Normal', reason: 'RolloutStarted', message }],
      )
    }
    case 'step': {
      if (candidate === undefined) return to({})
      const next: Candidate = { ...candidate, percent: decision.percent }
      return to(
        { candidate: next, record: { ...withoutStep(record), ...begunOf(record), step: (record.step ?? 0) + 1 } },
        policy.step.bakeMs,
      )
    }
    case 'watch':
      return to({ record: { ...record, since: new Date(seen.now).toISOString() } }, decision.waitMs)
    case 'settle': {
      const stable = candidate === undefined ? before.stable : { rev: candidate.rev, shards: candidate.shards }
      const history = remember(record, 'RolledOut', candidate?.rev ?? bundle.rev, seen.now)
      const arrived = seen.triesArrivals === true ? [...seen.changed].filter((id) => seen.tried.has(id)) : []
      const settled = withAdded(withoutStep(record), arrived, seen.now)
      return to({ stable, candidate: undefined, record: { ...settled, history } }, 0)
    }
    case 'drop':
      return to({ candidate: undefined, record: withoutStep(record) })
    case 'abort':
      return takenBack(decision, before, seen)
    case 'none': {
      const recheckMs = candidate === undefined ? undefined : Math.min(decision.waitMs ?? maxRecheckMs, maxRecheckMs)
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

function takenBack(
  { culprits, why, reasons }: Extract<Decision, { action: 'abort' }>,
  before: RolloutState,
  { tried, bundle, now, retryOf }: Seen,
): Transition {
  const { candidate, record } = before
  const rolledBack = { ...record.rolledBack }
  for (const id of culprits) {
    const fragment = tried.get(id)
    const retry = retryOf(id)
    if (fragment === undefined) continue
    rolledBack[id] = {
      hash: fragment.hash,
      ...(retry === undefined ? {} : { retry }),
      why: reasons?.get(id) ?? why,
    }
  }
  const rev = candidate?.rev ?? bundle.rev
  const history = remember(record, 'RolledBack', rev, now)
  const message = `Revision ${shortRevision(rev)} is taken back: ${why}.`
  return {
    state: {
      ...before,
      candidate: undefined,
      record: { ...without(withoutStep(record), culprits), rolledBack, history },
    },
    events: [{ type: 'Warning', reason: 'RolledBack', message }],
    // The rest of it is rendered next.
    recheckMs: 0,
    isStarted: false,
  }
}

export interface Return {
  readonly state: RolloutState
  readonly events: readonly RolloutEvent[]
  /** The earlier revision that runs; undefined: the rollout continues. */
  readonly revision: KnownRevision | undefined
}

/**
 * The state after a user asked for an earlier revision: it is put in force everywhere, because it has run everywhere before.
 * @param request the annotation with the request
 * @param wanted revision that runs without the request
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
    const message = `There is no revision to go back to: "${request}".`
    const events: RolloutEvent[] = isNew ? [{ type: 'Warning', reason: 'UndoFailed', message }] : []
    return { state: { ...before, record }, events, revision: undefined }
  }
  const revision = revisions.get(undone.to)
  if (revision === undefined) {
    // Its content is lost: what is to run is better than nothing.
    const over = { ...record, undone: { request: undone.request } }
    return { state: { ...before, record: over }, events: [], revision: undefined }
  }
  const { rev, shards } = revision
  if (before.stable?.rev === rev && before.candidate === undefined)
    return { state: { ...before, record, why: '' }, events: [], revision }
  const history = remembered(record.history, { revision: rev, at, result: 'Undone' })
  const message = `Revision ${shortRevision(rev)} runs again instead of ${shortRevision(wanted)}.`
  return {
    state: { stable: { rev, shards }, candidate: undefined, record: { ...withoutStep(record), history }, why: '' },
    events: [{ type: 'Normal', reason: 'Undone', message }],
    revision,
  }
}

function remember(record: RolloutRecord, result: string, revision: string, now: number) {
  return remembered(record.history, { revision, at: new Date(now).toISOString(), result })
}

/** The record without what is known of Pipelines that were taken back. */
function without({ added = {}, ...record }: RolloutRecord, culprits: ReadonlySet<string>): RolloutRecord {
  const left = Object.entries(added).filter(([id]) => !culprits.has(id))
  return left.length === 0 ? record : { ...record, added: Object.fromEntries(left) }
}

const begunOf = ({ begun }: RolloutRecord) => (begun === undefined ? {} : { begun })

function begunAt(record: RolloutRecord, now: number): RolloutRecord {
  return { ...withoutStep(record), step: 0, begun: new Date(now).toISOString() }
}

function withoutStep({ step: _, since: __, begun: ___, ...record }: RolloutRecord): RolloutRecord {
  return record
}
