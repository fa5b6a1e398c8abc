// The events of a rollout's agents since the start of the candidate's current step.

import { type Candidate, takesCandidate } from '@penstock/agent/bundle'
import { setAsideAt } from '../../fleet/aside.ts'
import type { Report, RolloutRecord, TrialRecord } from '../../fleet/state.ts'
import type { AgentNode } from '../rollout-plan.ts'
import { type AgentPod, endedRepeatedly, endsOf, hasEndedSince } from './pods.ts'

/** Records restarts and waits during a step, and provides the rollout's view of each agent. */
export class StepWatch {
  #step: string | undefined
  /** Ends of containers before the step, or before the pod appeared, by uid of the pod. */
  #ends = new Map<string, number>()
  /** Since when pods have continuously reported that they wait, by uid. */
  #waits = new Map<string, number>()
  /**
   * Ids of the pipelines that each agent has read logs for, by uid of the pod. An agent that restarts or loads another version has not
   * opened its files yet when it reports, but still counts as a reader of them.
   */
  #reads = new Map<string, ReadonlySet<string>>()
  /** Since when no chosen node has a pod. */
  #missingSince: number | undefined

  /**
   * Resets if this is a different step. @param begunAt when an earlier process began the step: containers that have ended since then have
   * ended in this step
   */
  follow(step: string, pods: readonly AgentPod[], begunAt?: number): void {
    if (step === this.#step) return
    this.#step = step
    const before = (pod: AgentPod) => endsOf(pod) - (begunAt !== undefined && hasEndedSince(pod, begunAt) ? 1 : 0)
    this.#ends = new Map(pods.map((pod) => [pod.metadata.uid ?? '', before(pod)]))
    this.#waits = new Map()
    this.#reads = new Map()
    this.#missingSince = undefined
  }

  /** How long no chosen node has had a pod; undefined: one has. */
  missingMs(candidate: Candidate, nodes: readonly AgentNode[], now: number): number | undefined {
    const isThere = nodes.some(({ node }) => takesCandidate(candidate, node))
    this.#missingSince = isThere ? undefined : (this.#missingSince ?? now)
    return this.#missingSince && now - this.#missingSince
  }

  node(pod: AgentPod, report: Report | undefined, stale: boolean, now: number): AgentNode {
    const uid = pod.metadata.uid ?? ''
    const before = this.#ends.get(uid) ?? endsOf(pod)
    this.#ends.set(uid, before)
    return {
      node: report?.node ?? pod.spec?.nodeName ?? pod.metadata.name,
      revision: report?.revision,
      failed: report?.failed ?? new Set(),
      failures: report?.failures ?? [],
      reason: report?.reason,
      stuck: report?.state === 'Stuck',
      waitingSince: this.#waitingSince(uid, report?.state, now),
      stale,
      crashed: endsOf(pod) > before,
      reads: this.#readsOf(uid, report?.reading),
    }
  }

  /** Restarts of a pod with a sidecar may have other causes. */
  sidecar({ podUid, node, revision, failed, failures, reason, reading, state }: Report, now: number): AgentNode {
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
      reads: this.#readsOf(podUid, reading),
    }
  }

  #readsOf(pod: string, reading: ReadonlySet<string> | undefined): ReadonlySet<string> | undefined {
    const before = this.#reads.get(pod)
    if (reading === undefined || before?.isSupersetOf(reading) === true) return before
    const all = before === undefined || before.isSubsetOf(reading) ? reading : before.union(reading)
    this.#reads.set(pod, all)
    return all
  }

  #waitingSince(pod: string, state: string | undefined, now: number): number | undefined {
    if (state !== 'Waiting') this.#waits.delete(pod)
    else if (!this.#waits.has(pod)) this.#waits.set(pod, now)
    return this.#waits.get(pod)
  }
}

/** A watch for the current step of each candidate. */
export class StepWatches {
  readonly #watches = new Map<string, StepWatch>()
  /** Uids of the pods that ended repeatedly before a trial began, by the time at which it began. */
  readonly #unsteady = new Map<string, ReadonlySet<string>>()
  /** Steps that an earlier process began; undefined before the first look. */
  #inherited: ReadonlySet<string> | undefined

  of(trial: TrialRecord & Begun, pods: readonly AgentPod[]): StepWatch {
    const key = stepOf(trial)
    const watch = this.#watches.get(key) ?? new StepWatch()
    this.#watches.set(key, watch)
    watch.follow(key, pods, this.#inherited?.has(key) === true ? begunAt(trial) : undefined)
    return watch
  }

  /** Uids of the pods that ended repeatedly before the trial began, so not because of it; without a trial, before now. */
  unsteady(record: Begun, pods: readonly AgentPod[], now: number): ReadonlySet<string> {
    const { begun } = record
    const known = begun === undefined ? undefined : this.#unsteady.get(begun)
    if (known !== undefined) return known
    const since = suspectUntil(record)
    const all = pods.filter((pod) => endedRepeatedly(pod, timeOf(begun) || now, since))
    const uids = new Set(all.map(({ metadata }) => metadata.uid ?? ''))
    if (begun !== undefined) this.#unsteady.set(begun, uids)
    return uids
  }

  /** Forgets other steps. */
  keep(trials: readonly TrialRecord[]): void {
    const kept = new Set(trials.map(stepOf))
    const begins = new Set(trials.map(({ begun }) => begun))
    for (const begun of this.#unsteady.keys()) if (!begins.has(begun)) this.#unsteady.delete(begun)
    this.#inherited ??= kept
    for (const key of this.#watches.keys()) if (!kept.has(key)) this.#watches.delete(key)
  }

  forget(): void {
    this.#watches.clear()
    this.#unsteady.clear()
    this.#inherited = new Set()
  }
}

const stepOf = ({ begun, step = 0 }: TrialRecord) => `${begun} ${step}`

type Begun = Pick<RolloutRecord, 'begun' | 'stepped' | 'history' | 'aside' | 'turn'>

/** Agents may end once more because of a change that was just rolled back or set aside, until they receive the content without it. */
const afterwardsMs = 15_000

const timeOf = (text: string | undefined) => Date.parse(text ?? '') || 0

/** When changes were last rolled back; 0: never. */
const rolledBackAt = (history: RolloutRecord['history']) =>
  timeOf(history.find(({ result }) => result === 'RolledBack')?.at)

/** Since when an end of a container counts against a step that an earlier process began. */
function begunAt({ begun, stepped, history, aside, turn }: Begun): number | undefined {
  if (begun === undefined) return undefined
  const began = Math.max(timeOf(begun), timeOf(stepped))
  const back = rolledBackAt(history)
  const isAfterwards = aside !== undefined || turn !== undefined || back + afterwardsMs > began
  return isAfterwards ? Math.max(began, back) + afterwardsMs : began
}

/** How long after changes were rolled back or set aside the end of an agent may be due to them. */
const suspectMs = 60_000

/**
 * Until when the end of an agent may be due to changes that were rolled back or set aside. Later ends have other causes: an agent that ends
 * again and again by itself must not delay the changes of others.
 */
export function suspectUntil({ history, aside = {} }: Pick<RolloutRecord, 'history' | 'aside'>): number {
  const groups = Object.values(aside).map(({ group }) => setAsideAt(group))
  return Math.max(rolledBackAt(history), ...groups) + suspectMs
}

/** With fewer events, a rate is not significant. */
const minEvents = 100
/** A loss rate up to this does not justify a rollback. */
const tolerableRate = 0.01

/** Changed pipelines that lose events more than twice as often under the candidate. */
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
    // A new or idle pipeline has no earlier rate to compare with.
    if (stable[1] < minEvents || tried[1] < minEvents) continue
    if (tried[0] / tried[1] > Math.max(2 * (stable[0] / stable[1]), tolerableRate)) worse.add(id)
  }
  return worse
}
