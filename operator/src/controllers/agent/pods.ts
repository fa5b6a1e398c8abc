// An Agent's pods, as its controllers see them. Pure.

import type { Agent } from '../../api/agent.ts'
import type { KubeObject } from '../../api/object.ts'
import type { FleetState, Report } from '../../fleet/state.ts'
import { labels } from '../../workloads/names.ts'

interface ContainerStatus {
  readonly name: string
  readonly restartCount: number
  readonly ready?: boolean
  readonly state?: {
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number }
    readonly waiting?: { readonly reason?: string }
  }
  readonly lastState?: { readonly terminated?: { readonly reason?: string; readonly exitCode?: number } }
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

/** Number of container restarts of a pod. */
export function restartsOf(pod: AgentPod): number {
  return (pod.status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0)
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
