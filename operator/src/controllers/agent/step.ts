// The events of a rollout's agents since the candidate's present step began.

import type { Candidate } from '@penstock/agent/bundle'
import type { Report } from '../../fleet/state.ts'
import type { AgentNode } from '../rollout-plan.ts'
import { type AgentPod, restartsOf } from './pods.ts'

/** Remembers restarts and waits of one step, and shows each agent as the rollout sees it. */
export class StepWatch {
  #step: string | undefined
  /** Restarts of containers when the step began, by uid of the pod. */
  #restarts: ReadonlyMap<string, number> = new Map()
  /** Since when pods have reported without a break that they wait, by uid. */
  #waits = new Map<string, number>()

  /** Begins again when this is another step than the last one. */
  follow(step: string, pods: readonly AgentPod[]): void {
    if (step === this.#step) return
    this.#step = step
    this.#restarts = new Map(pods.map((pod) => [pod.metadata.uid ?? '', restartsOf(pod)]))
    this.#waits = new Map()
  }

  forget(): void {
    this.#step = undefined
    this.#restarts = new Map()
    this.#waits = new Map()
  }

  node(pod: AgentPod, report: Report | undefined, stale: boolean, now: number): AgentNode {
    const uid = pod.metadata.uid ?? ''
    const before = this.#restarts.get(uid)
    return {
      node: report?.node ?? pod.spec?.nodeName ?? pod.metadata.name,
      revision: report?.revision,
      failed: report?.failed ?? new Set(),
      failures: report?.failures ?? [],
      reason: report?.reason,
      stuck: report?.state === 'Stuck',
      waitingSince: this.#waitingSince(uid, report?.state, now),
      stale,
      crashed: before !== undefined && restartsOf(pod) > before,
    }
  }

  /** The restarts of a pod with a sidecar are the user's own. */
  sidecar({ podUid, node, revision, failed, failures, reason, state }: Report, now: number): AgentNode {
    return {
      node,
      revision,
      failed,
      failures,
      reason,
      stuck: state === 'Stuck',
      waitingSince: this.#waitingSince(podUid, state, now),
      stale: false,
      crashed: false,
    }
  }

  #waitingSince(pod: string, state: string | undefined, now: number): number | undefined {
    if (state !== 'Waiting') this.#waits.delete(pod)
    else if (!this.#waits.has(pod)) this.#waits.set(pod, now)
    return this.#waits.get(pod)
  }
}

/** With fewer events a rate says nothing. */
const minEvents = 100
/** A rate of losses up to this is not worth taking a revision back. */
const tolerableRate = 0.01

/** Changed pipelines whose events get lost more than twice as often where the candidate runs. */
export function worseIn(
  reports: Iterable<Pick<Report, 'pipelines'> & { readonly lacks: ReadonlySet<string> }>,
  candidate: Candidate | undefined,
  changed: ReadonlySet<string>,
): Set<string> {
  const worse = new Set<string>()
  if (candidate === undefined || candidate.percent >= 100) return worse
  const rates = new Map<string, { tried: [number, number]; stable: [number, number] }>()
  for (const report of reports) {
    for (const [id, { eventsIn, dropped, errors }] of Object.entries(report.pipelines)) {
      if (!changed.has(id)) continue
      const side = report.lacks.has(id) ? 'stable' : 'tried'
      const rate = rates.get(id) ?? { tried: [0, 0], stable: [0, 0] }
      rate[side][0] += dropped + errors
      rate[side][1] += eventsIn
      rates.set(id, rate)
    }
  }
  for (const [id, { tried, stable }] of rates) {
    // A new pipeline, or one without traffic, has nothing to be compared with.
    if (stable[1] < minEvents || tried[1] < minEvents) continue
    if (tried[0] / tried[1] > Math.max(2 * (stable[0] / stable[1]), tolerableRate)) worse.add(id)
  }
  return worse
}
