// Which destinations agents can reach, from their reports. A destination counts as failing from the first failure until it accepts
// events again: minutes may pass between two attempts, and logs repeat a frequent failure only occasionally.

import type { HeartbeatBody } from '@penstock/agent/bundle'
import { countedOf } from '@penstock/agent/program'
import type { Finding, Reason } from '../api/conditions.ts'
import type { Report } from './state.ts'

type ReachReason = Extract<Reason, 'Unauthorized' | 'ConnectFailed' | 'TLSFailed' | 'Rejecting'>

const reasons: ReadonlySet<string> = new Set<ReachReason>(['Unauthorized', 'ConnectFailed', 'TLSFailed', 'Rejecting'])
const isReach = (reason: string): reason is ReachReason => reasons.has(reason)

/** Why a destination refuses a component of one pod. */
export interface DestinationRefusal {
  readonly pipeline: string
  readonly component: string
  /** Content of the pipeline for which it was observed. */
  readonly hash: string
  readonly reason: ReachReason
  readonly message: string
}

export type Refusals = ReadonlyMap<string, DestinationRefusal>

const none: Refusals = new Map()

/** The failures of a pod after one more report. */
export function refusalsAfter(
  before: Refusals | undefined,
  pipelines: HeartbeatBody['pipelines'],
  isSelected: (pipeline: string) => boolean,
): Refusals {
  const after = new Map<string, DestinationRefusal>()
  for (const [key, refusal] of before ?? none) {
    const reported = pipelines[refusal.pipeline]
    // Another content may have another destination.
    if (isSelected(refusal.pipeline) && (reported === undefined || reported.hash === refusal.hash))
      after.set(key, refusal)
  }
  for (const [pipeline, { components, hash }] of Object.entries(pipelines)) {
    for (const [component, { kind, sent, dropped, lastError }] of Object.entries(components)) {
      if (kind !== 'sink') continue
      const key = `${pipeline}/${component}`
      // If events were sent without a loss, at another attempt, the destination does not count as failing.
      const isRefused = lastError !== undefined && isReach(lastError.reason) && (sent === 0 || dropped > 0)
      if (isRefused) {
        const { reason, message } = lastError
        after.set(key, { pipeline, component, hash, reason: reason as ReachReason, message })
      } else if (sent > 0) after.delete(key)
    }
  }
  return after.size === 0 ? none : after
}

/** The pods' results for a destination. */
export class Reach {
  /** Nodes by failure, with the message of the first. */
  readonly #failing = new Map<ReachReason, { readonly nodes: Set<string>; readonly first: DestinationRefusal }>()
  readonly #reaching = new Set<string>()

  fails(node: string, refusal: DestinationRefusal): void {
    let known = this.#failing.get(refusal.reason)
    if (known === undefined) {
      known = { nodes: new Set(), first: refusal }
      this.#failing.set(refusal.reason, known)
    }
    known.nodes.add(node)
  }

  reaches(node: string): void {
    this.#reaching.add(node)
  }

  /** @param destinationsOf a component, in readable form; none if only a Secret contains them */
  finding(destinationsOf: (refusal: DestinationRefusal) => readonly string[]): Finding | undefined {
    const failing = [...this.#failing].sort(
      ([reason, { nodes }], [other, { nodes: others }]) => others.size - nodes.size || (reason < other ? -1 : 1),
    )
    const [worst] = failing
    if (worst === undefined) {
      if (this.#reaching.size === 0) return undefined
      return { type: 'Reachable', status: 'True', reason: 'Reachable', message: 'It answers.' }
    }
    const [reason, { nodes, first }] = worst
    const destinations = destinationsOf(first)
    const all = new Set(this.#reaching)
    for (const [, { nodes: some }] of failing) for (const node of some) all.add(node)
    const where = destinations.length === 0 ? '' : ` at ${destinations.join(', ')}`
    const text = `${countedOf(nodes.size, all.size, 'node', 'fails', 'fail')}${where}: ${first.message}`
    return { type: 'Reachable', status: 'False', reason, message: text }
  }
}

/** Results of pods about destinations, by the object that defines each: a Sink, or a Pipeline with its own sink. */
export function reachesOf(
  reports: Iterable<Pick<Report, 'node' | 'refusals' | 'pipelines'>>,
  targetOf: (pipeline: string, component: string) => string,
): Map<string, Reach> {
  const found = new Map<string, Reach>()
  const of = (pipeline: string, component: string) => {
    const target = targetOf(pipeline, component)
    const reach = found.get(target) ?? new Reach()
    found.set(target, reach)
    return reach
  }
  for (const { node, refusals, pipelines } of reports) {
    for (const refusal of refusals.values()) of(refusal.pipeline, refusal.component).fails(node, refusal)
    for (const [pipeline, { components }] of Object.entries(pipelines)) {
      for (const [component, { kind, sent }] of Object.entries(components)) {
        if (kind === 'sink' && sent > 0 && !refusals.has(`${pipeline}/${component}`))
          of(pipeline, component).reaches(node)
      }
    }
  }
  return found
}

/** The effect of the results for a Pipeline's own sinks, by name. */
export function ownSinksFinding(findings: ReadonlyMap<string, Finding>): Finding | undefined {
  const refused = [...findings].filter(([, { status }]) => status === 'False')
  const [first] = refused
  if (first !== undefined) {
    const message = refused.map(([name, finding]) => `sinks[${name}]: ${finding.message}`).join(' ')
    return { ...first[1], message }
  }
  if (findings.size === 0) return undefined
  return { type: 'Reachable', status: 'True', reason: 'Reachable', message: 'The destinations answer.' }
}
