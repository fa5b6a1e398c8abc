// An Agent's pods, as its controllers see them. Pure.

import type { Agent } from '../../api/agent.ts'
import type { KubeObject } from '../../api/object.ts'
import type { FleetState, Report } from '../../fleet/state.ts'
import { labels } from '../../workloads/names.ts'

interface ContainerStatus {
  readonly name: string
  readonly restartCount: number
  readonly ready?: boolean
  readonly state?: { readonly terminated?: Termination; readonly waiting?: { readonly reason?: string } }
  readonly lastState?: { readonly terminated?: Termination }
}

interface Termination {
  readonly reason?: string
  readonly exitCode?: number
  readonly finishedAt?: string
}

/** A pod as far as it matters here. */
export interface AgentPod extends KubeObject {
  readonly spec?: { readonly nodeName?: string }
  readonly status?: {
    readonly phase?: string
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string }[]
  }
}

/** Whether a pod has not reported for too long, counted from the earliest time at which it could have reported. */
export function isLost(pod: AgentPod, report: Report | undefined, fleet: FleetState, now: number): boolean {
  return fleet.isStale(report, now, Date.parse(pod.metadata.creationTimestamp ?? '') || 0)
}

/** Number of times that containers of a pod have ended. The kubelet counts a restart only when its wait for it is over. */
export function endsOf(pod: AgentPod): number {
  return (pod.status?.containerStatuses ?? []).reduce((sum, container) => {
    return sum + container.restartCount + (isDown(container) ? 1 : 0)
  }, 0)
}

const isDown = ({ state, lastState }: ContainerStatus) =>
  state?.terminated !== undefined || (state?.waiting !== undefined && lastState?.terminated !== undefined)

/** When a container of a pod ended last, by the clock of its node. */
function lastEndOf({ status }: AgentPod): number | undefined {
  const ends = (status?.containerStatuses ?? []).flatMap(({ state, lastState }) =>
    [state?.terminated, lastState?.terminated].flatMap((end) => Date.parse(end?.finishedAt ?? '') || []),
  )
  return ends.length === 0 ? undefined : Math.max(...ends)
}

/** A container that ended usually starts again within this time. */
const maxAwayMs = 120_000

/** Whether a container of a pod ended a moment ago, and its agent has not reported since. */
export function isAway(pod: AgentPod, report: Report | undefined, now: number): boolean {
  const end = lastEndOf(pod)
  if (end === undefined || now - end >= maxAwayMs) return false
  // Both times are of the same node; that of the end has no fractions of a second.
  return (pod.status?.containerStatuses ?? []).some(isDown) || !(Date.parse(report?.startedAt ?? '') >= end)
}

/** Ends within this time are a series: the kubelet waits at most five minutes before it starts a container again. */
const seriesMs = 600_000

/**
 * Whether the containers of a pod ended repeatedly until shortly before a time. @param since earlier ends may have a known cause, so they
 * do not count
 */
export function endedRepeatedly(pod: AgentPod, until: number, since: number): boolean {
  const end = lastEndOf(pod)
  return end !== undefined && endsOf(pod) > 1 && end < until && end >= Math.max(since, until - seriesMs)
}

/** Whether the last end of a pod's containers was before this time. */
export function hasEndedBefore(pod: AgentPod, at: number): boolean {
  return (lastEndOf(pod) ?? Number.POSITIVE_INFINITY) < at
}

/** Whether a container of a pod has ended since then. */
export function hasEndedSince(pod: AgentPod, at: number): boolean {
  return (lastEndOf(pod) ?? 0) >= at
}

/** The running pods of an Agent. */
export function podsOf(agent: Agent, all: Iterable<AgentPod>): AgentPod[] {
  const { namespace, name } = agent.metadata
  const pods: AgentPod[] = []
  for (const pod of all) {
    const { labels: own, namespace: where, deletionTimestamp } = pod.metadata
    if (where !== namespace || own?.[labels.agent] !== name || deletionTimestamp !== undefined) continue
    if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') continue
    pods.push(pod)
  }
  return pods
}
