// One decision of a rollout: gathers the reports of pods, lets transition.ts decide, and keeps the events to record.

import { candidateFor } from '@penstock/agent/bundle'
import type { Agent } from '../../api/agent.ts'
import type { OperatorContext } from '../../context.ts'
import { isDoubted, saltOf } from '../../fleet/aside.ts'
import { changesOf } from '../../fleet/contents.ts'
import { causeOf } from '../../fleet/flow.ts'
import type { Delivered, FleetState, Report, RolloutRecord } from '../../fleet/state.ts'
import { changedIn, fragmentsIn } from '../revisions.ts'
import { type AgentNode, policyOf, type RolloutPolicy, readersFor } from '../rollout-plan.ts'
import type { AgentMemory } from './memory.ts'
import { type AgentPod, hasEndedBefore, isAway, isLost } from './pods.ts'
import { lacksIn, type Start } from './rebase.ts'
import { type StepWatch, suspectUntil, worseIn } from './step.ts'
import { advance, type RolloutState, type Seen, type Transition } from './transition.ts'
import { moveUp, putView, trialsOf, viewOf } from './trials.ts'

export interface Decided {
  /** Milliseconds until the next check, if time alone can change the decision. */
  readonly waitMs: number | undefined
  /** Ids of the Pipelines whose change leaves the candidates, so that the caller must update the contents. */
  readonly leaves: ReadonlySet<string> | undefined
}

interface Gathered {
  readonly key: string
  readonly agent: Agent
  readonly memory: AgentMemory
  readonly start: Start
  readonly pods: readonly AgentPod[]
  /** Number of pods that the workload is to have. */
  readonly wantedPods: number
  readonly fleet: FleetState
  readonly artifacts: OperatorContext['artifacts']
  readonly now: number
}

/**
 * Makes one decision for each trial of an Agent's rollout, and stores the results in `delivered`.
 * @param key the key of the Agent
 */
export function decideTrial(
  key: string,
  agent: Agent,
  delivered: Delivered,
  memory: AgentMemory,
  seen: Pick<Gathered, 'start' | 'pods' | 'wantedPods' | 'fleet' | 'artifacts'>,
): Decided {
  const gathered = { ...seen, key, agent, memory, now: seen.fleet.now() }
  const before = trialsOf(delivered)
  const { record } = delivered
  memory.steps.keep([record, ...(record.later ?? [])])
  const first = decideOne(delivered, 0, gathered)
  let waitMs = first.recheckMs
  let { leaves } = first
  const isSame = () => trialsOf(delivered).every(({ rev }, index) => rev === before[index]?.rev)
  for (let index = 1; leaves === undefined && isSame() && index < trialsOf(delivered).length; index++) {
    const next = decideOne(delivered, index, gathered)
    waitMs = sooner(waitMs, next.recheckMs)
    leaves = next.leaves
  }
  if (leaves === undefined && isSame() && delivered.candidate !== undefined && seen.start.next !== undefined) {
    const next = decideOne(delivered, trialsOf(delivered).length, gathered)
    waitMs = sooner(waitMs, next.recheckMs)
  }
  moveUp(delivered)
  return { waitMs, leaves }
}

const sooner = (left: number | undefined, right: number | undefined) =>
  left === undefined || right === undefined ? (left ?? right) : Math.min(left, right)

/** Decides about one trial. If `index` is the number of trials, decides whether another trial begins. */
function decideOne(delivered: Delivered, index: number, gathered: Gathered): Transition {
  const { key, agent, memory, start, pods, fleet, artifacts, now } = gathered
  const view = viewOf(delivered, index)
  const { candidate, stable, record } = view
  const isFirst = index === 0
  const turn = isFirst ? start.turn : undefined
  const tried = fragmentsIn(delivered, candidate)
  const runs = fragmentsIn(delivered, stable)
  const changed = changedIn(tried, runs)
  const bundle = isFirst
    ? start.revision
    : candidate === undefined
      ? start.next
      : delivered.revisions.get(candidate.rev)
  const nothing = { state: view, events: [], recheckMs: undefined, isStarted: false }
  if (bundle === undefined) return nothing
  const watch = memory.steps.of(record, pods)
  const nodes = nodesOf(gathered, watch, record, memory.steps.unsteady(record, pods, now))
  if (!isFirst && nodes.length === 0) return nothing
  const later = { later: trialsOf(delivered).slice(index + 1) }
  const isLater = (node: string) => later.later.length > 0 && candidateFor(later, node) !== undefined
  const changedLater = changedIn(fragmentsIn(delivered, later.later.at(-1) ?? candidate), tried)
  const starts = new Set(changesOf(bundle.fragments, runs))
  const lacksOf = lacksIn(delivered, candidate, changed)
  const reports = [...fleet.reports(key)].map(({ revision, node, pipelines }) => ({
    lacks: lacksOf(revision),
    pipelines: isLater(node) ? without(pipelines, changedLater) : pipelines,
  }))
  const seenNodes = nodes.map((node) => {
    const lacks = lacksOf(node.revision)
    if (!isLater(node.node)) return withLacks(node, candidate?.rev, lacks)
    // A Pipeline that a later candidate changes again only counts for the later one.
    const own = { ...node, failed: node.failed.difference(changedLater), isLater: true }
    return withLacks(own, candidate?.rev, lacks.difference(changedLater))
  })
  const policy = policyOf(agent.spec.rollout)
  const worse = worseIn(reports, candidate, changed)
  const transition = advance(view, {
    ...{ now, policy },
    ...{ bundle, turn, waits: isFirst ? start.waits : start.waitsLast },
    ...{ tried, changed, starts },
    ...{ worse, lossCauses: lossCausesIn(fleet, worse, now) },
    isArrival: isFirst && turn === undefined && starts.size === 0,
    triesArrivals: isFirst && candidate !== undefined && turn === undefined && changesOf(tried, runs).length === 0,
    base: isFirst ? undefined : baseOf(delivered, index),
    maySplit: start.maySplit === true && later.later.length === 0,
    nodes: seenNodes,
    ...{ wantedPods: gathered.wantedPods, isUnheard: isUnheard(gathered, nodes) },
    salt: turn === undefined ? undefined : saltOf(turn),
    isDoubted: isDoubted(record.aside, turn),
    missingMs: candidate && watch.missingMs(candidate, nodes, now),
    retryOf: (id) => artifacts.get(id)?.retry,
  })
  const { state, events, isStarted, leaves } = transition
  const content = state.candidate?.rev === bundle.rev ? bundle.fragments : tried
  putView(
    delivered,
    index,
    withReaders(state, changesOf(content, runs), seenNodes, { policy, now, hearingMs: fleet.hearingMs }),
  )
  // An agent that ended because of a change may end again before it receives the content without the change.
  if (leaves !== undefined || (isStarted && candidate !== undefined)) memory.steps.forget()
  for (const event of events)
    if (!memory.decided.some(({ message }) => message === event.message)) memory.decided.push(event)
  return transition
}

/** The component of each Pipeline that loses most events, with its node and its last error. */
function lossCausesIn(fleet: FleetState, worse: ReadonlySet<string>, now: number): Map<string, string> {
  const causes = new Map<string, string>()
  for (const id of worse) {
    const cause = causeOf('SomeEventsDropped', fleet.flow(id)?.failing(now) ?? [])
    if (cause !== undefined) causes.set(id, cause)
  }
  return causes
}

/** The candidate that a later one is based on. */
function baseOf(delivered: Delivered, index: number): Seen['base'] {
  const { candidate, record } = viewOf(delivered, index - 1)
  const isLoaded = (record.step ?? 0) === 0 || record.since !== undefined
  return candidate && { percent: candidate.percent, salt: candidate.salt, isLoaded }
}

/** Adds agents to the first step that read logs for the changes. */
function withReaders(
  state: RolloutState,
  changed: readonly string[],
  nodes: readonly AgentNode[],
  { policy, now, hearingMs }: { readonly policy: RolloutPolicy; readonly now: number; readonly hearingMs: number },
): RolloutState {
  const { candidate, record } = state
  if (candidate === undefined || candidate.percent >= 100 || (record.step ?? 0) > 0) return state
  // While a new Pipeline reaches all agents, it is not yet known which of them read its logs.
  const isKnown = (id: string) => !(now - Date.parse(record.added?.[id] ?? '') < hearingMs)
  const also = readersFor(candidate, new Set(changed.filter(isKnown)), nodes, policy)
  return also.length === (candidate.also?.length ?? 0) ? state : { ...state, candidate: { ...candidate, also } }
}

function without(pipelines: Report['pipelines'], ids: ReadonlySet<string>): Report['pipelines'] {
  return Object.fromEntries(Object.entries(pipelines).filter(([id]) => !ids.has(id)))
}

/**
 * An agent counts as running the candidate if it runs all tried changes, even if other Pipelines were added or removed
 * since.
 */
function withLacks(node: AgentNode, rev: string | undefined, lacks: ReadonlySet<string>): AgentNode {
  return { ...node, lacks, revision: lacks.size === 0 && rev !== undefined ? rev : node.revision }
}

/**
 * Whether agents may exist of which nothing is known. Where pods belong to users, only those that report are known. Pods of a workload are
 * known, unless all of them are being replaced.
 */
function isUnheard({ agent, wantedPods, fleet, now }: Gathered, nodes: readonly AgentNode[]): boolean {
  if (agent.spec.mode === 'Sidecar') return !fleet.isStale(undefined, now)
  return nodes.length === 0 && wantedPods > 0
}

/** Whether an agent process has reported for so short a time that it may not have opened all its files. */
function isFresh(report: Report | undefined, fleet: FleetState, now: number): boolean {
  return report !== undefined && now - report.heardSince < fleet.hearingMs
}

/** Removes the reports of deleted pods, which must not count as losses either. */
function nodesOf(
  { key, agent, pods, fleet, now }: Gathered,
  watch: StepWatch,
  record: RolloutRecord,
  unsteady: ReadonlySet<string>,
): AgentNode[] {
  if (agent.spec.mode === 'Sidecar') {
    // Pods with a sidecar belong to users: only those that report are known.
    const reports = [...fleet.reports(key)].filter((report) => !fleet.isStale(report, now))
    fleet.keep(key, new Set(reports.map((report) => report.podUid)))
    return reports.map((report) => ({
      ...watch.sidecar(report, now),
      ...{ heardAt: report.at, runsSince: report.heardSince, isFresh: isFresh(report, fleet, now) },
    }))
  }
  fleet.keep(key, new Set(pods.map((pod) => pod.metadata.uid ?? '')))
  const until = suspectUntil(record)
  return pods.map((pod) => {
    const report = fleet.report(key, pod.metadata.uid ?? '')
    const node = watch.node(pod, report, isLost(pod, report, fleet, now), now)
    const away = isAway(pod, report, now)
    return {
      ...{ ...node, heardAt: report?.at, runsSince: report?.heardSince, isFresh: isFresh(report, fleet, now) },
      ...{ isAway: away, isAwayByChange: away && hasEndedBefore(pod, until) },
      isUnsteady: unsteady.has(pod.metadata.uid ?? ''),
    }
  })
}
