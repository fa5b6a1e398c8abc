// What the parts that bring bundles to agents share: what was delivered for each Agent, and what its pods have reported. It is all
// in memory; a new leader reads what was delivered from the Secrets and hears from every pod within half a minute.

import type { Candidate, Revision } from '@penstock/agent/bundle/format'
import type { HeartbeatBody, LastError } from '@penstock/agent/bundle/heartbeat'
import type { Failure } from '@penstock/agent/bundle/runner'
import type { ShardFile } from '../render/bundle.ts'
import type { Fragment } from '../render/fragment.ts'

/** What stands in an annotation of the first Secret, so that a rollout goes on where another process has left it. */
export interface RolloutRecord {
  /** Of the candidate: its step and when that began, RFC 3339. */
  readonly step?: number
  readonly since?: string
  /** Contents that were taken back: they are not tried again before they change or `retry` does. */
  readonly rolledBack: Readonly<
    Record<string, { readonly hash: string; readonly retry?: string; readonly why: string }>
  >
  readonly history: readonly { readonly revision: string; readonly at: string; readonly result: string }[]
}

export interface KnownRevision {
  readonly rev: string
  readonly shards: readonly ShardFile[]
  readonly fragments: ReadonlyMap<string, Fragment>
}

/** What is delivered for an Agent. */
export interface Delivered {
  stable: Revision | undefined
  candidate: Candidate | undefined
  record: RolloutRecord
  /** Revisions whose content is at hand, by `rev`. */
  readonly revisions: Map<string, KnownRevision>
  /** Pipelines that shall run, by id, with the hash of what shall run. */
  selected: ReadonlyMap<string, Fragment>
  /** Left out because of the size, with the reason. */
  evicted: ReadonlyMap<string, string>
  /** Why a candidate fails but is not taken back, or waits. */
  why: string
}

/** A pod of an agent, as it reported last. */
export interface Report {
  readonly pod: string
  readonly podUid: string
  readonly node: string
  readonly version: string
  readonly startedAt: string
  readonly revision: string | undefined
  readonly state: string
  readonly reason: string | undefined
  readonly failures: readonly Failure[]
  readonly failed: ReadonlySet<string>
  readonly pipelines: HeartbeatBody['pipelines']
  /** Since when a pipeline has read events, or holds some, and delivered none. */
  readonly silentSince: ReadonlyMap<string, number>
  /** When it came, in milliseconds since the epoch. */
  readonly at: number
}

interface Sums {
  eventsIn: number
  eventsOut: number
  dropped: number
  errors: number
}

/** Traffic of a pipeline in the last minutes. */
class Flow {
  /** By half minute. */
  readonly #sums = new Map<number, Sums>()

  add(at: number, sums: Sums): void {
    const slot = Math.floor(at / flowSlotMs)
    const known = this.#sums.get(slot)
    if (known === undefined) this.#sums.set(slot, { ...sums })
    else for (const name of sumNames) known[name] += sums[name]
    for (const each of this.#sums.keys()) if (each <= slot - flowWindowMs / flowSlotMs) this.#sums.delete(each)
  }

  within(now: number, windowMs = flowWindowMs): Sums {
    const total = { eventsIn: 0, eventsOut: 0, dropped: 0, errors: 0 }
    for (const [slot, sums] of this.#sums) {
      if (slot * flowSlotMs > now - windowMs) for (const name of sumNames) total[name] += sums[name]
    }
    return total
  }
}

const sumNames = ['eventsIn', 'eventsOut', 'dropped', 'errors'] as const
const flowSlotMs = 30_000
export const flowWindowMs = 300_000
/** Three heartbeats that did not come. */
export const staleMs = 90_000

export interface ComponentError extends LastError {
  readonly node: string
}

export class Delivery {
  readonly #delivered = new Map<string, Delivered>()
  /** By Agent, by uid of the pod. */
  readonly #reports = new Map<string, Map<string, Report>>()
  readonly #flows = new Map<string, Flow>()
  /** By pipeline and component. */
  readonly errors = new Map<string, Map<string, { kind: string; errors: number; last: ComponentError | undefined }>>()
  readonly startedAt = Date.now()
  readonly #listeners = new Set<(agent: string) => void>()

  /** Hears of an Agent about which something new is known. */
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

  forget(agent: string): void {
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

  /** Drops the reports of pods that are gone. */
  keep(agent: string, pods: ReadonlySet<string>): void {
    const reports = this.#reports.get(agent)
    for (const uid of reports?.keys() ?? []) if (!pods.has(uid)) reports?.delete(uid)
  }

  /** Takes a heartbeat whose sender has been made sure of. */
  hear(agent: string, sender: { pod: string; podUid: string; node: string }, body: HeartbeatBody, now: number): void {
    let reports = this.#reports.get(agent)
    if (reports === undefined) {
      reports = new Map()
      this.#reports.set(agent, reports)
    }
    const before = reports.get(sender.podUid)
    // An agent speaks for the pipelines of its Agent and for no others. What failed is only looked at for those.
    const selected = this.#delivered.get(agent)?.selected ?? new Map<string, Fragment>()
    const report: Report = {
      ...sender,
      version: text(body.version),
      startedAt: text(body.startedAt),
      revision: body.revision === undefined ? undefined : text(body.revision),
      state: text(body.state),
      reason: body.reason === undefined ? undefined : text(body.reason),
      failures: listOf(body.failures).slice(0, 20).map(failureOf),
      failed: new Set(listOf(body.failed).slice(0, mostFailed).map(text)),
      pipelines: Object.fromEntries(
        Object.entries(tableOf(body.pipelines))
          .filter(([id]) => selected.has(id))
          .map(([id, said]) => [id, pipelineOf(said)]),
      ),
      silentSince: new Map(),
      at: now,
    }
    const silentSince = new Map<string, number>()
    for (const [id, { eventsIn, eventsOut, bufferedEvents }] of Object.entries(report.pipelines)) {
      if (eventsOut === 0 && eventsIn + bufferedEvents > 0) silentSince.set(id, before?.silentSince.get(id) ?? now)
    }
    reports.set(sender.podUid, { ...report, silentSince })
    for (const [id, sums] of Object.entries(report.pipelines)) this.#count(id, sums, sender.node, now)
    const same =
      before !== undefined &&
      before.revision === report.revision &&
      before.state === report.state &&
      before.startedAt === report.startedAt &&
      [...before.failed].join() === [...report.failed].join()
    if (!same) this.changed(agent)
  }

  #count(id: string, sums: HeartbeatBody['pipelines'][string], node: string, now: number): void {
    let flow = this.#flows.get(id)
    if (flow === undefined) {
      flow = new Flow()
      this.#flows.set(id, flow)
    }
    flow.add(now, sums)
    for (const [name, component] of Object.entries(sums.components ?? {})) {
      if (component.errors === 0 && component.lastError === undefined) continue
      let components = this.errors.get(id)
      if (components === undefined) {
        components = new Map()
        this.errors.set(id, components)
      }
      const known = components.get(name)
      components.set(name, {
        kind: component.kind,
        errors: (known?.errors ?? 0) + component.errors,
        last: component.lastError === undefined ? known?.last : { ...component.lastError, node },
      })
    }
  }

  flow(id: string, now: number, windowMs?: number): Sums {
    return this.#flows.get(id)?.within(now, windowMs) ?? { eventsIn: 0, eventsOut: 0, dropped: 0, errors: 0 }
  }
}

const mostComponents = 200
const mostFailed = 10_000

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function tableOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0
}

function failureOf(value: unknown): Failure {
  const { pipeline, component, reason, message } = tableOf(value)
  return {
    pipeline: text(pipeline),
    component: component === undefined ? undefined : text(component),
    reason: text(reason),
    message: text(message),
  }
}

function pipelineOf(value: unknown): HeartbeatBody['pipelines'][string] {
  const said = tableOf(value)
  const components = Object.entries(tableOf(said['components'])).slice(0, mostComponents)
  return {
    generation: countOf(said['generation']),
    uid: text(said['uid']),
    hash: text(said['hash']),
    eventsIn: countOf(said['eventsIn']),
    eventsOut: countOf(said['eventsOut']),
    dropped: countOf(said['dropped']),
    errors: countOf(said['errors']),
    bufferedEvents: countOf(said['bufferedEvents']),
    bufferedBytes: countOf(said['bufferedBytes']),
    bufferUse: Math.min(1, countOf(said['bufferUse'])),
    components: Object.fromEntries(components.map(([name, component]) => [text(name), componentOf(component)])),
  }
}

function componentOf(value: unknown): HeartbeatBody['pipelines'][string]['components'][string] {
  const said = tableOf(value)
  const kind: 'source' | 'transform' | 'sink' =
    said['kind'] === 'source' || said['kind'] === 'transform' ? said['kind'] : 'sink'
  const counts = {
    kind,
    errors: countOf(said['errors']),
    dropped: countOf(said['dropped']),
    sent: countOf(said['sent']),
  }
  if (said['lastError'] === undefined) return counts
  const { reason, message, at } = tableOf(said['lastError'])
  const time = Date.parse(text(at))
  return {
    ...counts,
    lastError: {
      reason: text(reason),
      message: text(message),
      at: new Date(Number.isNaN(time) ? Date.now() : time).toISOString(),
    },
  }
}

/** What is said in a heartbeat is data of others: text, and not too long. */
function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 1024) : ''
}
