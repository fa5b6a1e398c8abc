// State shared by the parts that deliver bundles to agents: the delivered content of each Agent, and the reports of its pods. It is
// all in memory; a new leader reads the delivered content from the Secrets, and receives a report from every pod within half a
// minute.

import { isDeepStrictEqual } from 'node:util'
import {
  type Candidate,
  type HeartbeatBody,
  heartbeatPeriods,
  type PipelineReport,
  type Revision,
} from '@penstock/agent/bundle'
import type { Agent } from '../api/agent.ts'
import { monotonicNow } from '../kube/clock.ts'
import type { ShardFile } from '../render/bundle.ts'
import type { Fragment } from '../render/fragment.ts'
import { Flow } from './flow.ts'
import { type HeartbeatContent, readHeartbeat } from './heartbeat.ts'
import { type Refusals, refusalsAfter } from './reach.ts'
import type { Undone } from './undo.ts'

/** The progress of a candidate's trial. */
export interface TrialRecord {
  /** Step of the candidate, and since when all agents of that step have run it (RFC 3339). */
  readonly step?: number
  readonly since?: string
  /** When the candidate was first tried, and when its current step began. */
  readonly begun?: string
  readonly stepped?: string
  /** Changes that joined in the first step, by Pipeline: when each joined, and since when all canaries have run it. */
  readonly joined?: Readonly<Record<string, { readonly at: string; readonly since?: string }>>
}

/**
 * The annotation of the first Secret, from which another process continues a rollout. The members inherited from `TrialRecord` belong to
 * the candidate.
 */
export interface RolloutRecord extends TrialRecord {
  /** The trials of the later candidates. */
  readonly later?: readonly TrialRecord[]
  /**
   * Changes that wait for a separate trial, by Pipeline, the next ones first. They were set aside because one of them made agents fail,
   * or because they made no progress. Changes with the same `group` are tried together. `blocked` means that they made no progress
   * before, and yield to others. `alone` means that they made no progress even without others. `doubt` means that agents which ended
   * must first run without them.
   */
  readonly aside?: Readonly<
    Record<
      string,
      {
        readonly hash: string
        readonly group: string
        readonly blocked?: true
        readonly alone?: true
        readonly doubt?: true
        readonly why: string
      }
    >
  >
  /** The group that is being tried, or was tried last. */
  readonly turn?: string
  /**
   * Pipelines that all agents received without a trial, and when. If agents fail soon afterwards, these Pipelines are suspects
   * too.
   */
  readonly added?: Readonly<Record<string, string>>
  /** Rolled-back content, which is not tried again until it or `retry` changes. */
  readonly rolledBack: Readonly<
    Record<string, { readonly hash: string; readonly retry?: string; readonly why: string }>
  >
  /** Digests of older rolled-back content, whose reason is no longer stored. */
  readonly withheld?: readonly string[]
  readonly history: readonly { readonly revision: string; readonly at: string; readonly result: string }[]
  /** The revision that a user returned to. */
  readonly undone?: Undone
}

export interface KnownRevision {
  readonly rev: string
  readonly shards: readonly ShardFile[]
  readonly fragments: ReadonlyMap<string, Fragment>
}

/** The delivered content of an Agent. */
export interface Delivered {
  stable: Revision | undefined
  candidate: Candidate | undefined
  /** Candidates with further changes, each based on the one before it. */
  later?: readonly Candidate[]
  record: RolloutRecord
  /** Revisions whose content is available, by `rev`. */
  readonly revisions: Map<string, KnownRevision>
  /** Desired Pipelines by id, with the hash of their content. */
  selected: ReadonlyMap<string, Fragment>
  /** Pipelines omitted because of the size, with the reason. */
  evicted: ReadonlyMap<string, string>
  /** Ids of Pipelines that were rolled back so long ago that the reason is no longer stored. */
  withheld?: ReadonlySet<string>
  /** The maximum delay of an agent's first request to the API server. */
  startSpreadMs: number
  /** Why a candidate fails but is not rolled back, or waits. */
  why: string
}

/** The content for agents that request their bundle: a state that is already in the Secrets, and never changes. */
export interface Offered {
  readonly mode: Agent['spec']['mode']
  /** The ServiceAccount of its pods; undefined if they belong to users. */
  readonly account: string | undefined
  readonly stable: OfferedRevision | undefined
  readonly candidate: OfferedCandidate | undefined
  readonly later?: readonly OfferedCandidate[]
  readonly secretsEpoch: string
  /** Secret values by key, and their digests. */
  readonly values: ReadonlyMap<string, Buffer>
  readonly digests: Readonly<Record<string, string>>
}

export interface OfferedRevision {
  readonly rev: string
  readonly fragments: ReadonlyMap<string, Fragment>
}

export type OfferedCandidate = OfferedRevision & Pick<Candidate, 'percent' | 'salt' | 'also'>

/** A pod of an agent with its last report. */
export interface Report extends HeartbeatContent {
  readonly pod: string
  readonly podUid: string
  readonly node: string
  /** Since when a pipeline has read or held events but delivered none. */
  readonly silentSince: ReadonlyMap<string, number>
  /** Destinations that refuse its components. */
  readonly refusals: Refusals
  /** Since when this agent process has reported. */
  readonly heardSince: number
  /** Whether this agent process has run a revision while it was current. */
  readonly hasServed: boolean
  /** When the report arrived, in milliseconds since the epoch. */
  readonly at: number
}

export class FleetState {
  readonly #delivered = new Map<string, Delivered>()
  /** By Agent, by uid of the pod. */
  readonly #reports = new Map<string, Map<string, Report>>()
  /** By pipeline. */
  readonly #flows = new Map<string, Flow>()
  /** Since when agents report to this process. */
  #hearsSince: number
  /** The clock of all times of reports. */
  readonly now: () => number
  readonly #periodMs: number
  /** Every running agent reports within this time, even if its report is late. */
  readonly hearingMs: number
  readonly #listeners = new Set<(agent: string) => void>()
  readonly #offers = new Map<string, Offered>()
  readonly #takers = new Set<(agent: string) => void>()

  constructor(heartbeatPeriodMs: number = heartbeatPeriods.defaultMs, now = monotonicNow) {
    this.now = now
    this.#hearsSince = now()
    this.#periodMs = heartbeatPeriodMs
    // Agents still use the period of the previous operator, which may have been longer.
    this.hearingMs = Math.max(1.5 * heartbeatPeriodMs, 45_000)
  }

  /** This process leads from now on. However long it has been running, it has heard of no agent before. */
  lead(): void {
    this.#hearsSince = this.now()
  }

  /** Whether three heartbeats are missing; without a report, counted since this process leads or since the pod was created. */
  isStale(report: Report | undefined, now: number, createdAt = 0): boolean {
    const maxSilenceMs = 3 * this.#periodMs
    if (report !== undefined) return now - report.at > maxSilenceMs
    return now - Math.max(this.#hearsSince, createdAt) > Math.max(maxSilenceMs, this.hearingMs)
  }

  /** Notified of an Agent with news. */
  onChange(listener: (agent: string) => void): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  changed(agent: string): void {
    for (const listener of this.#listeners) listener(agent)
  }

  get(agent: string): Delivered | undefined {
    return this.#delivered.get(agent)
  }

  set(agent: string, delivered: Delivered): void {
    this.#delivered.set(agent, delivered)
  }

  /** The offered content of an Agent; undefined: nothing, or not yet known. */
  offered(agent: string): Offered | undefined {
    return this.#offers.get(agent)
  }

  offer(agent: string, next: Offered | undefined): void {
    const before = this.#offers.get(agent)
    if (next === undefined) this.#offers.delete(agent)
    else if (before === undefined || !isSameOffer(before, next)) this.#offers.set(agent, next)
    if (this.#offers.get(agent) !== before) for (const taker of this.#takers) taker(agent)
  }

  /** Notified of an Agent whose offer changes. */
  onOffer(taker: (agent: string) => void): Disposable {
    this.#takers.add(taker)
    return { [Symbol.dispose]: () => void this.#takers.delete(taker) }
  }

  forget(agent: string): void {
    this.offer(agent, undefined)
    this.#delivered.delete(agent)
    this.#reports.delete(agent)
    this.changed(agent)
  }

  agents(): IterableIterator<[string, Delivered]> {
    return this.#delivered.entries()
  }

  report(agent: string, uid: string): Report | undefined {
    return this.#reports.get(agent)?.get(uid)
  }

  reports(agent: string): Iterable<Report> {
    return this.#reports.get(agent)?.values() ?? []
  }

  /** Removes the reports of deleted pods. */
  keep(agent: string, pods: ReadonlySet<string>): void {
    const reports = this.#reports.get(agent)
    for (const uid of reports?.keys() ?? []) if (!pods.has(uid)) reports?.delete(uid)
  }

  /** Processes a heartbeat from an authenticated sender. */
  hear(agent: string, sender: { pod: string; podUid: string; node: string }, body: HeartbeatBody, now: number): void {
    let reports = this.#reports.get(agent)
    if (reports === undefined) {
      reports = new Map()
      this.#reports.set(agent, reports)
    }
    const before = reports.get(sender.podUid)
    // An agent only reports for the pipelines of its Agent. Only their failures count.
    const delivered = this.#delivered.get(agent)
    const selected = delivered?.selected ?? new Map<string, Fragment>()
    const isSelected = (id: string) => selected.has(id)
    const received = readHeartbeat(body, isSelected)
    const report: Report = {
      ...sender,
      ...received,
      // Which of them are pipelines of its Agent is not known yet.
      reading: delivered === undefined ? undefined : received.reading,
      silentSince: new Map(),
      refusals: new Map(),
      heardSince: now,
      hasServed: false,
      at: now,
    }
    const silentSince = new Map<string, number>()
    for (const [id, sums] of Object.entries(report.pipelines)) {
      if (isStalled(sums)) silentSince.set(id, before?.silentSince.get(id) ?? now)
    }
    const known = before?.startedAt === report.startedAt ? before : undefined
    const { stable, candidate, later = [] } = delivered ?? {}
    const isInForce =
      report.revision !== undefined && [stable, candidate, ...later].some((each) => each?.rev === report.revision)
    reports.set(sender.podUid, {
      ...report,
      silentSince,
      refusals: refusalsAfter(known?.refusals, report.pipelines, isSelected),
      heardSince: known?.heardSince ?? now,
      hasServed: known?.hasServed === true || isInForce,
    })
    const since = known?.at ?? now - this.#periodMs
    for (const [id, sums] of Object.entries(report.pipelines)) this.#count(id, sums, sender.node, since, now)
    const same =
      before !== undefined &&
      before.revision === report.revision &&
      before.state === report.state &&
      before.startedAt === report.startedAt &&
      [...before.failed].join() === [...report.failed].join()
    if (!same) this.changed(agent)
  }

  #count(id: string, sums: HeartbeatBody['pipelines'][string], node: string, since: number, now: number): void {
    let flow = this.#flows.get(id)
    if (flow === undefined) {
      flow = new Flow(1.2 * this.#periodMs)
      this.#flows.set(id, flow)
    }
    flow.add(since, now, sums)
    for (const [name, { kind, errors, lastError }] of Object.entries(sums.components ?? {})) {
      if (errors === 0 && lastError === undefined) continue
      flow.fail(now, name, kind, errors, lastError === undefined ? undefined : { ...lastError, node })
    }
  }

  /** Traffic of a pipeline; undefined if there never was any. */
  flow(id: string): Flow | undefined {
    return this.#flows.get(id)
  }

  /** Removes the traffic of deleted pipelines. */
  keepFlows(ids: { has(id: string): boolean }): void {
    for (const id of this.#flows.keys()) if (!ids.has(id)) this.#flows.delete(id)
  }
}

/** Whether no events were delivered although there were some, not counting those removed intentionally. */
export function isStalled({
  eventsIn,
  eventsOut,
  filtered = 0,
  bufferedEvents,
}: Pick<PipelineReport, 'eventsIn' | 'eventsOut' | 'filtered' | 'bufferedEvents'>): boolean {
  return eventsOut === 0 && (eventsIn > filtered || bufferedEvents > 0)
}

function isSameOffer(left: Offered, right: Offered): boolean {
  const candidates = ({ candidate, later = [] }: Offered) =>
    [candidate, ...later].map((each) => each && [each.rev, each.percent, each.salt, each.also ?? []])
  return (
    left.mode === right.mode &&
    left.secretsEpoch === right.secretsEpoch &&
    left.stable?.rev === right.stable?.rev &&
    isDeepStrictEqual(candidates(left), candidates(right))
  )
}
