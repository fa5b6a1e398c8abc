// One decision of a rollout: gathers what pods report, lets transition.ts decide, and remembers the events to record.

import type { Agent } from '../../api/agent.ts'
import type { OperatorContext } from '../../context.ts'
import { changesOf } from '../../fleet/contents.ts'
import type { Delivered, FleetState, KnownRevision } from '../../fleet/state.ts'
import { monotonicNow } from '../../kube/clock.ts'
import { changedIn, fragmentsIn } from '../revisions.ts'
import { type AgentNode, policyOf } from '../rollout-plan.ts'
import type { AgentMemory } from './memory.ts'
import { type AgentPod, isLost } from './pods.ts'
import { triedRevisions } from './rebase.ts'
import { worseIn } from './step.ts'
import { advance } from './transition.ts'

/**
 * Lets the rollout of an Agent continue by one decision, and puts the result into `delivered`.
 * @param key the key of the Agent
 * @returns after how many milliseconds to look again, if time alone can change the decision
 */
export function decideTrial(
  key: string,
  agent: Agent,
  delivered: Delivered,
  memory: AgentMemory,
  seen: {
    readonly bundle: KnownRevision
    readonly pods: readonly AgentPod[]
    readonly fleet: FleetState
    readonly artifacts: OperatorContext['artifacts']
  },
): number | undefined {
  const { bundle, pods, fleet, artifacts } = seen
  const now = monotonicNow()
  const { candidate, stable, record } = delivered
  const tried = fragmentsIn(delivered, candidate)
  const runs = fragmentsIn(delivered, stable)
  const changed = changedIn(tried, runs)
  // Its content follows what comes and goes; the rollout is the same.
  if (candidate !== undefined) memory.step.follow(`${candidate.salt} ${record.begun} ${record.step ?? 0}`, pods)
  // Drops the reports of pods that are gone, which must not count as losses either.
  const nodes =
    agent.spec.mode === 'Sidecar' ? sidecarsOf(key, fleet, memory, now) : nodesOf(key, pods, fleet, memory, now)
  const revisionOf = triedRevisions(delivered, candidate, changed)
  const reports = [...fleet.reports(key)].map(({ revision, pipelines }) => ({
    revision: revisionOf(revision),
    pipelines,
  }))
  const { state, events, recheckMs, isStarted } = advance(delivered, {
    now,
    policy: policyOf(agent.spec.rollout),
    bundle,
    tried,
    changed,
    worse: worseIn(reports, candidate, changed),
    isArrival: changesOf(bundle.fragments, runs).length === 0,
    triesArrivals: candidate !== undefined && changesOf(tried, runs).length === 0,
    nodes: nodes.map((node) => ({ ...node, revision: revisionOf(node.revision) })),
    retryOf: (id) => artifacts.get(id)?.retry,
  })
  Object.assign(delivered, state)
  if (isStarted) memory.step.forget()
  for (const event of events)
    if (!memory.decided.some(({ message }) => message === event.message)) memory.decided.push(event)
  return recheckMs
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

/** Pods with a sidecar are the users' own: only those that report are known. */
function sidecarsOf(key: string, fleet: FleetState, { step }: AgentMemory, now: number): AgentNode[] {
  const reports = [...fleet.reports(key)].filter((report) => !fleet.isStale(report, now))
  fleet.keep(key, new Set(reports.map((report) => report.podUid)))
  return reports.map((report) => step.sidecar(report, now))
}
