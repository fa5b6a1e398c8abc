// The only writer of status. It merges the reports of all parts with the existing status, derives the summary, and writes if the
// result differs from the API server's: at once if a condition changes, otherwise after a delay.

import { canonicalJson, sameJson } from '@penstock/agent/bundle'
import { printable, TokenBucket } from '@penstock/agent/program'
import type { Logger } from '@penstock/agent/telemetry'
import {
  type Condition,
  type ConditionType,
  conditionOf,
  conditionTypes,
  type Finding,
  type Reason,
} from '../api/conditions.ts'
import { kindOf, kinds, type ResourceKind } from '../api/kinds.ts'
import { type KubeObject, keyOf } from '../api/object.ts'
import type { EventRecorder, StatusContribution, StatusPart, StatusWriter } from '../context.ts'
import { statusParts } from '../context.ts'
import type { Cache } from '../kube/cache.ts'
import { isReason, isTerminating, type KubeClient } from '../kube/client.ts'
import { Corrections, contendedMs } from './contention.ts'
import { Controller, type ControllerMetrics } from './controller.ts'
import { storyOf } from './story.ts'

export interface StatusObject extends KubeObject {
  readonly spec?: { readonly suspend?: boolean; readonly managementState?: string }
  readonly status?: Readonly<Record<string, unknown>> & { readonly conditions?: readonly Condition[] }
}

const statusManager = 'penstock-status'
/**
 * Concurrent writes: they wait for the API server, and if it needs a second for each, an author's write must not wait for all others.
 */
const writers = 32

/**
 * Limit for writes that only report the progress of a rollout. With many changes a second, each would cause several such writes, and
 * results would wait behind them.
 */
const progressWrites = { perSecond: 5, burst: 50 }
const progressReasons: ReadonlySet<string> = new Set<Reason>(['Pending', 'RollingOut', 'Progressing'])

/** Conditions that always exist, by kind; and those that must be true for `Ready`. */
const shown: Readonly<
  Record<string, { readonly always: readonly ConditionType[]; readonly needed: readonly ConditionType[] }>
> = {
  Pipeline: {
    always: ['Accepted', 'ResolvedRefs', 'Programmed', 'Flowing'],
    needed: ['Accepted', 'ResolvedRefs', 'Programmed'],
  },
  Source: { always: ['Accepted', 'ResolvedRefs'], needed: ['Accepted', 'ResolvedRefs'] },
  Sink: { always: ['Accepted', 'ResolvedRefs', 'Reachable'], needed: ['Accepted', 'ResolvedRefs'] },
  Agent: { always: ['Accepted', 'Available', 'Programmed'], needed: ['Accepted', 'Available', 'Programmed'] },
  TenantPolicy: { always: ['Accepted'], needed: ['Accepted'] },
}

/** Reasons that end progress until a user changes something. */
const terminal: ReadonlySet<string> = new Set<Reason>([
  'InvalidConfig',
  'CompileFailed',
  'TestsFailed',
  'ForbiddenOption',
  'QuotaExceeded',
  'NameConflict',
  'NamespaceNotAllowed',
  'AuthorNotAllowed',
  'RolledBack',
  'Undone',
  'BundleTooLarge',
])

type Reports = Partial<Record<StatusPart, StatusContribution>>

export interface StatusOptions {
  readonly kube: KubeClient
  readonly cacheOf: (kind: ResourceKind) => Cache<StatusObject> | undefined
  readonly events: EventRecorder
  readonly logger: Logger
  readonly metrics: ControllerMetrics
  readonly signal: AbortSignal
  /** Minimum interval between writes of a status in which only figures have changed. */
  readonly periodMs: number
  readonly now?: () => Date
}

export class Statuses implements StatusWriter, AsyncDisposable {
  readonly #options: StatusOptions
  readonly #controller: Controller
  /** By `Pipeline shop/checkout uid`. */
  readonly #reports = new Map<string, Reports>()
  readonly #writtenAt = new Map<string, number>()
  readonly #progress = new TokenBucket(progressWrites.perSecond, progressWrites.burst)
  /** When a status may be written that only reports progress, by key. */
  readonly #progressAt = new Map<string, number>()
  /** The conditions that were last written, and the corrections of changes by others, by key. */
  readonly #lastTexts = new Map<string, { readonly text: string; readonly corrections: Corrections | undefined }>()
  #warnedAt = Number.NEGATIVE_INFINITY
  readonly #subscriptions: Disposable[] = []

  constructor(options: StatusOptions) {
    this.#options = options
    this.#controller = new Controller({
      name: 'status',
      logger: options.logger,
      metrics: options.metrics,
      signal: options.signal,
      workers: writers,
      reconcile: (key, signal) => this.#reconcile(key, signal),
    })
  }

  start(): this {
    for (const kind of kinds) {
      const cache = this.#options.cacheOf(kind)
      if (cache === undefined) continue
      this.#subscriptions.push(
        cache.subscribe(({ type, object }) => {
          const key = `${kind.kind} ${keyOf(object)}`
          if (type === 'deleted') this.#forget(key, object)
          // A status changed by another client is corrected.
          else if (this.#reports.has(reportKey(key, object))) this.#controller.add(key, 'resync')
        }),
      )
    }
    this.#controller.start(() => [...this.#reports.keys()].map((key) => key.slice(0, key.lastIndexOf(' '))))
    return this
  }

  report(kind: ResourceKind, object: KubeObject, part: StatusPart, contribution: StatusContribution): void {
    const key = `${kind.kind} ${keyOf(object)}`
    const reports = this.#reports.get(reportKey(key, object)) ?? {}
    const before = reports[part]
    if (before !== undefined && sameJson(before, contribution)) return
    this.#reports.set(reportKey(key, object), { ...reports, [part]: contribution })
    // Authors wait for results about a spec, so these have priority. Figures, and the revision, which changes for all Pipelines at
    // once, follow later; parts often report together, and one write covers all.
    if (part === 'compile') this.#controller.add(key)
    else this.#controller.queue.addAfter(key, 20, 'resync')
  }

  reported(kind: ResourceKind, object: KubeObject, part: StatusPart): StatusContribution | undefined {
    return this.#reports.get(reportKey(`${kind.kind} ${keyOf(object)}`, object))?.[part]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
    await this.#controller[Symbol.asyncDispose]()
  }

  #forget(key: string, object: KubeObject): void {
    this.#reports.delete(reportKey(key, object))
    this.#writtenAt.delete(key)
    this.#progressAt.delete(key)
    this.#lastTexts.delete(key)
  }

  /** Another client has changed conditions again and again since they were written, most likely another operator. */
  #contended(object: StatusObject): void {
    const { events, logger, metrics } = this.#options
    const message = 'Another client, probably another operator of Penstock, keeps changing this status.'
    events.record(object, 'Warning', 'Contended', `${message} This operator corrects it every two minutes.`)
    metrics.contended.inc()
    if (performance.now() - this.#warnedAt < contendedMs) return
    this.#warnedAt = performance.now()
    const help = 'Give each operator other namespaces with --watch-namespaces.'
    logger.warn({ object: `${object.kind} ${keyOf(object)}`, help }, message)
  }

  /** Milliseconds until a status may be written that only reports progress. */
  #progressWait(key: string): number {
    const now = performance.now()
    const at = this.#progressAt.get(key) ?? now + this.#progress.takeAfterMs(now)
    this.#progressAt.set(key, at)
    return Math.max(0, Math.ceil(at - now))
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    const [kindName, name] = key.split(' ') as [string, string]
    const kind = kindOf(kindName)
    const cache = kind === undefined ? undefined : this.#options.cacheOf(kind)
    if (kind === undefined || cache === undefined) return undefined
    const [namespace, own] = name.includes('/') ? (name.split('/') as [string, string]) : [undefined, name]
    const object = cache.get(namespace, own)
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined
    const reports = this.#reports.get(reportKey(key, object))
    if (reports === undefined) return undefined
    const before = object.status ?? {}
    const after = statusOf(kind, object, reports, this.#options.now?.() ?? new Date())
    if (sameJson(normal(before), normal(after))) return undefined
    const since = performance.now() - (this.#writtenAt.get(key) ?? Number.NEGATIVE_INFINITY)
    const isAnswer = before['observedGeneration'] !== after['observedGeneration']
    const isQuiet =
      sameJson(normal({ conditions: before.conditions }), normal({ conditions: after['conditions'] })) && !isAnswer
    if (isQuiet && since < this.#options.periodMs) return this.#options.periodMs - since
    if (!isAnswer && isProgress(before.conditions, after.conditions)) {
      const waitMs = this.#progressWait(key)
      if (waitMs > 0) return waitMs
    }
    const text = conditionsText(after.conditions)
    const last = this.#lastTexts.get(key)
    const isCorrection = last?.text === text && conditionsText(before.conditions, after.conditions) !== text
    const corrections = isCorrection ? (last.corrections ?? new Corrections()) : last?.corrections
    if (isCorrection && corrections !== undefined) {
      const waitMs = corrections.waitMs()
      if (waitMs > 0) return waitMs
      corrections.add()
      if (corrections.isContended()) this.#contended(object)
    }
    this.#progressAt.delete(key)
    try {
      const { apiVersion } = object
      const metadata = namespace === undefined ? { name: own } : { name: own, namespace }
      const written = await this.#options.kube.apply<StatusObject>(
        kind,
        { apiVersion, kind: kind.kind, metadata, status: after },
        // An author waits for the result about a new generation: thousands of token checks for agents must not delay it.
        { fieldManager: statusManager, subresource: 'status', signal, urgent: isAnswer ? 'result' : undefined },
      )
      this.#writtenAt.set(key, performance.now())
      this.#lastTexts.set(key, { text, corrections })
      cache.expect(written)
      // Only written changes count: a successor reads them, and reports nothing twice.
      const story = storyOf(kind.kind, before.conditions, after.conditions)
      for (const { type, reason, message } of story) this.#options.events.record(object, type, reason, message)
      return undefined
    } catch (error) {
      if (isReason(error, 'NotFound') || isTerminating(error)) return undefined
      throw error
    }
  }
}

/** A status with its conditions in one order, because the server keeps them in its own. */
function normal(status: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const conditions = (status['conditions'] ?? []) as readonly Condition[]
  return { ...status, conditions: conditions.toSorted((left, right) => (left.type < right.type ? -1 : 1)) }
}

/** The content of conditions without their times. It only contains the types in `only`, because other clients may add others. */
function conditionsText(conditions: readonly Condition[] = [], only = conditions): string {
  const types = new Set(only.map(({ type }) => type))
  const own = conditions.filter(({ type }) => types.has(type))
  return canonicalJson(own.map(({ type, status, reason, message }) => [type, status, reason, message]).sort())
}

/** Whether conditions differ only in the progress of a rollout. */
function isProgress(before: readonly Condition[] | undefined, after: readonly Condition[]): boolean {
  const known = new Map(before?.map((condition) => [condition.type, condition]))
  const changed = after.filter((condition) => !sameJson(condition, known.get(condition.type)))
  const isStep = ({ type, status, reason }: Condition) => {
    const earlier = known.get(type)
    return earlier?.status === status && progressReasons.has(reason) && progressReasons.has(earlier.reason)
  }
  return changed.length > 0 && known.size === after.length && changed.every(isStep)
}

const reportKey = (key: string, object: KubeObject) => `${key} ${object.metadata.uid ?? ''}`

/** The desired status of an object: the reports of parts, and the existing status where a part has not reported yet. */
export function statusOf(
  kind: ResourceKind,
  object: StatusObject,
  reports: Reports,
  now: Date,
): Readonly<Record<string, unknown>> & { readonly conditions: readonly Condition[] } {
  const before = object.status ?? {}
  const { always, needed } = shown[kind.kind.replace('Cluster', '')] ?? { always: [], needed: [] }
  const found = new Map<ConditionType, Finding & { readonly generation: number }>()
  const status: Record<string, unknown> = {}
  for (const part of Object.keys(statusParts) as StatusPart[]) {
    const report = reports[part]
    const { conditions, fields } = statusParts[part] as {
      conditions: readonly ConditionType[]
      fields: readonly string[]
    }
    if (report === undefined) {
      for (const type of conditions) {
        const kept = conditionOf(before.conditions, type)
        if (kept === undefined || found.has(type)) continue
        found.set(type, {
          type,
          status: kept.status,
          reason: kept.reason as Reason,
          message: kept.message,
          generation: kept.observedGeneration ?? 0,
        })
      }
      for (const field of fields) if (before[field] !== undefined) status[field] ??= before[field]
      continue
    }
    for (const finding of report.findings) found.set(finding.type, { ...finding, generation: report.generation })
    for (const [field, value] of Object.entries(report.fields ?? {})) if (value !== undefined) status[field] = value
  }
  const generation = Math.max(0, ...Object.values(reports).map((report) => report.generation))
  for (const type of always) {
    if (found.has(type)) continue
    const reason = type === 'Flowing' ? 'NoData' : 'Pending'
    const message = type === 'Flowing' && object.spec?.suspend === true ? suspendedText : 'Nothing is known yet.'
    found.set(type, { type, status: 'Unknown', reason, message, generation })
  }
  for (const finding of summaryOf(object, found, { always, needed, generation }))
    found.set(finding.type, { ...finding, generation })
  const time = `${now.toISOString().slice(0, 19)}Z`
  const conditions = conditionTypes.flatMap((type): Condition | [] => {
    const finding = found.get(type)
    if (finding === undefined) return []
    const known = conditionOf(before.conditions, type)
    return {
      type,
      status: finding.status,
      reason: finding.reason,
      message: printable(finding.message).slice(0, 4096),
      observedGeneration: finding.generation,
      lastTransitionTime: known?.status === finding.status ? known.lastTransitionTime : time,
    }
  })
  return { ...status, observedGeneration: generation, conditions }
}

const suspendedText = 'spec.suspend is true: no agent runs it.'

interface Summarised {
  readonly always: readonly ConditionType[]
  readonly needed: readonly ConditionType[]
  /** The generation that the summary is about. */
  readonly generation: number
}

/**
 * `Ready`, and `Reconciling` or `Stalled` while they are true (kstatus). A condition of an earlier generation does not count for this one.
 */
function summaryOf(
  object: StatusObject,
  found: ReadonlyMap<ConditionType, Finding & { readonly generation: number }>,
  { always, needed, generation }: Summarised,
): Finding[] {
  if (object.spec?.managementState === 'Unmanaged') {
    const message = 'spec.managementState is Unmanaged: the operator changes nothing.'
    return [{ type: 'Ready', status: 'Unknown', reason: 'Unmanaged', message }]
  }
  const suspended = object.spec?.suspend === true
  const relevant = needed
    .filter((type) => !(suspended && type === 'Programmed'))
    .map((type): Finding => {
      const finding = found.get(type) as Finding & { readonly generation: number }
      if (finding.generation >= generation) return finding
      const message = `${type} of generation ${generation} is not known yet.`
      return { type, status: 'Unknown', reason: 'Pending', message }
    })
  // A Pipeline is ready when it runs, whatever happens to its events.
  const unreachable = always.includes('Reachable') ? found.get('Reachable') : undefined
  const failed = relevant.find(({ status }) => status === 'False')
  const stalled = relevant.find(({ status, reason }) => status === 'False' && terminal.has(reason))
  if (failed !== undefined) {
    const { reason, message } = stalled ?? failed
    const ready: Finding = { type: 'Ready', status: 'False', reason, message }
    if (stalled !== undefined) return [ready, { type: 'Stalled', status: 'True', reason, message }]
    return [ready, { type: 'Reconciling', status: 'True', reason: 'Progressing', message }]
  }
  const unknown = relevant.find(({ status }) => status === 'Unknown')
  if (unknown !== undefined) {
    const { reason, message } = unknown
    return [
      { type: 'Ready', status: 'Unknown', reason, message },
      { type: 'Reconciling', status: 'True', reason: 'Progressing', message },
    ]
  }
  if (unreachable?.status === 'False') {
    return [{ type: 'Ready', status: 'False', reason: 'Unreachable', message: unreachable.message }]
  }
  if (suspended) return [{ type: 'Ready', status: 'True', reason: 'Suspended', message: suspendedText }]
  return [{ type: 'Ready', status: 'True', reason: 'Ready', message: '' }]
}
