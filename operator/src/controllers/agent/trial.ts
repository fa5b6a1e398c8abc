// One decision of a rollout: gathers the reports of pods, lets transition.ts decide, and keeps the events to record.

import type { Agent } from '../../api/agent.ts'
import type { OperatorContext } from '../../context.ts'
import { changesOf } from '../../fleet/contents.ts'
import type { Delivered, FleetState } from '../../fleet/state.ts'
import { monotonicNow } from '../../kube/clock.ts'
import { changedIn, fragmentsIn } from '../revisions.ts'
import { type AgentNode, policyOf } from '../rollout-plan.ts'
import type { AgentMemory } from './memory.ts'
import { type AgentPod, isLost } from './pods.ts'
import { lacksIn, type Start } from './rebase.ts'
import { worseIn } from './step.ts'
import { advance } from './transition.ts'

export interface Decided {
  /** After how many milliseconds to look again, if time alone can change the decision. */
  readonly waitMs: number | undefined
  /** Ids of the Pipelines whose change leaves the candidate: the contents are to be made anew. */
  readonly leaves: ReadonlySet<string> | undefined
}

/**
 * Lets the rollout of an Agent continue by one decision, and puts the result into `delivered`.
 * @param key the key of the Agent
 */
export function decideTrial(
  key: string,
  agent: Agent,
  delivered: Delivered,
  memory: AgentMemory,
  seen: {
    readonly start: Start
    readonly pods: readonly AgentPod[]
    readonly fleet: FleetState
    readonly artifacts: OperatorContext['artifacts']
  },
): Decided {
  const { pods, fleet, artifacts } = seen
  const { revision: bundle, turn, waits } = seen.start
  const now = monotonicNow()
  const { candidate, stable, record } = delivered
  const tried = fragmentsIn(delivered, candidate)
  const runs = fragmentsIn(delivered, stable)
  const changed = changedIn(tried, runs)
  // Its content follows added and removed Pipelines; the rollout stays the same.
  if (candidate !== undefined) memory.step.follow(`${candidate.salt} ${record.begun} ${record.step ?? 0}`, pods)
  // Removes the reports of deleted pods, which must not count as losses either.
  const nodes =
    agent.spec.mode === 'Sidecar' ? sidecarsOf(key, fleet, memory, now) : nodesOf(key, pods, fleet, memory, now)
  const lacksOf = lacksIn(delivered, candidate, changed)
  const reports = [...fleet.reports(key)].map(({ revision, pipelines }) => ({ lacks: lacksOf(revision), pipelines }))
  const { state, events, recheckMs, isStarted, leaves } = advance(delivered, {
    now,
    policy: policyOf(agent.spec.rollout),
    ...{ bundle, turn, waits },
    tried,
    changed,
    worse: worseIn(reports, candidate, changed),
    isArrival: turn === undefined && changesOf(bundle.fragments, runs).length === 0,
    triesArrivals: candidate !== undefined && turn === undefined && changesOf(tried, runs).length === 0,
    nodes: nodes.map((node) => withLacks(node, candidate?.rev, lacksOf(node.revision))),
    retryOf: (id) => artifacts.get(id)?.retry,
  })
  Object.assign(delivered, state)
  if (isStarted) memory.step.forget()
  for (const event of events)
    if (!memory.decided.some(({ message }) => message === event.message)) memory.decided.push(event)
  return { waitMs: recheckMs, leaves }
}

/** An agent counts as one that runs the candidate when it runs all that is tried, whatever else has come or gone since. */
function withLacks(node: AgentNode, rev: string | undefined, lacks: ReadonlySet<string>): AgentNode {
  return { ...node, lacks, revision: lacks.size === 0 && rev !== undefined ? rev : node.revision }
}

function nodesOf(
  key: string,
  pods: readonly AgentPod[],
  fleet: FleetState,
  { step }: AgentMemory,
  now: number,
): AgentNode[] {
  fleet.keep(key, new Set(pods.map((pod) => pod.metadata.uid ?? '')))
  return pods.map((pod) => {
    const report = fleet.report(key, pod.metadata.uid ?? '')
    return step.node(pod, report, isLost(pod, report, fleet, now), now)
  })
}

/** Pods with a sidecar belong to users: only those that report are known. */
function sidecarsOf(key: string, fleet: FleetState, { step }: AgentMemory, now: number): AgentNode[] {
  const reports = [...fleet.reports(key)].filter((report) => !fleet.isStale(report, now))
  fleet.keep(key, new Set(reports.map((report) => report.podUid)))
  return reports.map((report) => step.sidecar(report, now))
}
