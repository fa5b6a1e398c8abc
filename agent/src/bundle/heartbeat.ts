// Reports to the operator, at the period that the operator sets and after every attempt to load: the running revision, failures, and the
// figures of its pipelines since the last report. Without an operator the agent continues unchanged.

import type { SinkBuffer } from '../buffers/buffer.ts'
import { errorText, type FailureKind, kindOfCode, PenstockError } from '../errors.ts'
import { type Logger, type LogRecord, subscribe } from '../telemetry/logger.ts'
import type { Labels, Metrics } from '../telemetry/metrics.ts'
import { doubledMs } from '../timing/backoff.ts'
import type { Topology } from '../topology/run.ts'
import { version } from '../version.ts'
import { type HeartbeatAnswer, heartbeatPeriods, type Leftover, pipelineOf } from './format.ts'
import type { Leftovers } from './leftovers.ts'
import { type OperatorAddress, OperatorClient } from './operator-client.ts'
import { type BundleRunner, type LoadFailure, nameOf } from './runner.ts'

export interface HeartbeatOptions extends OperatorAddress {
  readonly node: string
  readonly pod: string
  readonly namespace: string
  readonly logger: Logger
  readonly metrics: Metrics
  readonly leftovers?: Leftovers | undefined
  /** Where errors are observed; by default the log of the process. */
  readonly subscribeToLog?: typeof subscribe
}

export interface ComponentReport {
  readonly kind: 'source' | 'transform' | 'sink'
  readonly errors: number
  readonly dropped: number
  /** For sinks: events that the destination accepted. */
  readonly sent: number
  readonly lastError?: LastError
}

export interface LastError {
  readonly reason: string
  readonly message: string
  readonly at: string
}

export interface PipelineReport {
  readonly generation: number
  readonly uid: string
  readonly hash: string
  /** Since the last report. */
  readonly eventsIn: number
  readonly eventsOut: number
  /** Events removed intentionally, by a filter or a program; missing in reports of older agents. */
  readonly filtered?: number
  /** Events lost because of an error, a limit, or a full buffer. */
  readonly dropped: number
  /** Bytes of log files given up before they were read. */
  readonly lostBytes: number
  readonly errors: number
  /** Current number. */
  readonly bufferedEvents: number
  readonly bufferedBytes: number
  /** Fill level of the fullest buffer, from 0 to 1. */
  readonly bufferUse: number
  /** Age of the oldest unread log line; 0 if there is none. */
  readonly lagSeconds: number
  /** Components with figures to report. */
  readonly components: Readonly<Record<string, ComponentReport>>
}

export interface HeartbeatBody {
  readonly schema: 1
  readonly node: string
  readonly pod: string
  readonly namespace: string
  readonly version: string
  readonly startedAt: string
  readonly revision: string | undefined
  readonly candidate: boolean
  readonly secretsEpoch: string | undefined
  /** Missing in reports of older agents. */
  readonly delivery?: 'Mounted' | 'Stream'
  readonly state: string
  readonly reason: string | undefined
  /** At most 20; `failed` lists all. */
  readonly failures: readonly LoadFailure[]
  readonly failed: readonly string[]
  /** Pipelines with activity since the last report. */
  readonly pipelines: Readonly<Record<string, PipelineReport>>
  /** Pipelines that have found files to read, even idle ones. Missing in reports of older agents. */
  readonly reading?: readonly string[]
  /**
   * Leftovers on disk of pipelines that the agent does not run; it asks the operator whether the pipelines were
   * removed.
   */
  readonly leftovers?: readonly Leftover[]
}

const timeoutMs = 10_000
/** Load attempts within this time share one report. */
const soonMs = 100
/** A second report follows this long after a load, with its first figures. */
const firstFiguresMs = 5000
/** Shutdown waits this long to send the last report. */
const lastMs = 1000
/** Failed reports are retried after this wait, which doubles each time up to the normal period. */
const retryMs = 1000
const maxFailures = 20
/** A control plane has a few addresses. */
const maxDenied = 1000

const counted = [
  'component_sent_events_total',
  'component_errors_total',
  'component_discarded_events_total',
  'buffer_discarded_events_total',
  'log_bytes_lost_total',
] as const

type Counts = Readonly<Record<(typeof counted)[number] | 'filtered', number>>

const isIntentional = ({ intentional }: Labels) => intentional === 'true'

function countsIn(metrics: Metrics): Map<string, Counts> {
  // Events that a source discards intentionally exceed a limit, so they count as lost.
  const isFiltered = ({ intentional, component_kind }: Labels) => intentional === 'true' && component_kind !== 'source'
  const filtered = metrics.byComponent(['component_discarded_events_total'], isFiltered)
  // Events dropped intentionally by a full buffer are also counted by its component, and count as lost too.
  const full = metrics.byComponent(['buffer_discarded_events_total'], isIntentional)
  const onPurpose = (id: string) =>
    (filtered.get(id)?.component_discarded_events_total ?? 0) - (full.get(id)?.buffer_discarded_events_total ?? 0)
  const all = metrics.byComponent(counted)
  return new Map(
    [...all].map(([id, counts]) => [
      id,
      {
        ...counts,
        component_discarded_events_total:
          counts.component_discarded_events_total - (full.get(id)?.buffer_discarded_events_total ?? 0),
        filtered: Math.max(0, onPurpose(id)),
      },
    ]),
  )
}

export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #runner: BundleRunner
  readonly #topology: Topology
  readonly #startedAt = new Date().toISOString()
  readonly #ending = new AbortController()
  /** Errors of components until they recover. The first error is kept, because later ones usually follow from it. */
  readonly #lastErrors = new Map<string, Complaint>()
  #reported = new Map<string, Counts>()
  readonly #client: OperatorClient
  #periodMs: number = heartbeatPeriods.defaultMs
  #timer: NodeJS.Timeout | undefined
  /** When the timer is due, by the process's clock. */
  #dueAt = Number.POSITIVE_INFINITY
  #sending: Promise<void> | undefined
  #again = false
  /** A load, or its failure, triggers two reports: its result, and its first figures. */
  #isNew = false
  /** Number of consecutive failed attempts. */
  #failed = 0
  readonly #unsubscribe: () => void

  constructor(options: HeartbeatOptions, runner: BundleRunner, topology: Topology) {
    this.#options = options
    this.#client = new OperatorClient(options)
    this.#runner = runner
    this.#topology = topology
    this.#unsubscribe = (options.subscribeToLog ?? subscribe)((record) => this.#hear(record))
    runner.onAttempt = () => {
      this.#isNew = true
      this.#schedule(soonMs)
    }
    options.metrics.counter('heartbeat_failures_total').add(0)
    this.#schedule(soonMs)
  }

  async stop(): Promise<void> {
    this.#runner.onAttempt = () => {}
    clearTimeout(this.#timer)
    this.#ending.abort()
    await this.#sending
  }

  /** Called after the topology has stopped: sends the last figures, including those of failed reports. */
  async close(): Promise<void> {
    await this.#send(AbortSignal.timeout(lastMs))
    this.#unsubscribe()
    await this.#client.close()
  }

  #schedule(inMs: number): void {
    if (this.#ending.signal.aborted) return
    clearTimeout(this.#timer)
    this.#dueAt = performance.now() + inMs
    this.#timer = setTimeout(() => this.#beat(), inMs)
  }

  /** A destination has started to refuse events: reports this at once instead of with the next heartbeat. */
  #reportSoon(): void {
    if (this.#failed > 0) return
    if (this.#timer === undefined) this.#isNew = true
    else if (this.#dueAt - performance.now() > firstFiguresMs) this.#schedule(firstFiguresMs)
  }

  #beat(): void {
    this.#timer = undefined
    if (this.#sending !== undefined) {
      this.#again = true
      return
    }
    const signal = AbortSignal.any([this.#ending.signal, AbortSignal.timeout(timeoutMs)])
    this.#sending = this.#send(signal).finally(() => {
      this.#sending = undefined
      // Changes during the request are reported soon. Otherwise reports are spread, so that the agents of a cluster do not all send at the
      // same time.
      if (this.#again) this.#schedule(soonMs)
      else if (this.#timer === undefined) this.#schedule(this.#nextMs() * (0.8 + Math.random() * 0.4))
      this.#again = false
    })
  }

  #nextMs(): number {
    if (this.#failed > 0) return doubledMs(this.#failed - 1, retryMs, this.#periodMs)
    const isNew = this.#isNew
    this.#isNew = false
    return isNew ? Math.min(this.#periodMs, firstFiguresMs) : this.#periodMs
  }

  async #send(signal: AbortSignal): Promise<void> {
    const { logger, metrics, leftovers } = this.#options
    const counts = countsIn(metrics)
    const sentErrors = [...this.#lastErrors]
    try {
      const answer = await this.#client.post('/v1/heartbeat', this.#body(counts), signal)
      if (answer.status < 200 || answer.status >= 300) {
        throw new PenstockError('PEN_REQUEST_FAILED', `The operator responded with status ${answer.status}.`)
      }
      this.#settle(counts)
      this.#reported = counts
      // Errors found while this report was sent belong to the next one.
      for (const [id, complaint] of sentErrors)
        if (this.#lastErrors.get(id) === complaint) this.#lastErrors.set(id, { ...complaint, isReported: true })
      const { periodMs, gone, denied } = answerIn(answer.body)
      // An old operator, or one that knows no addresses, sends none: the last known ones stay.
      if (denied.length > 0) this.#runner.denied.set(denied)
      this.#periodMs = periodMs
      leftovers?.answered(gone)
      if (this.#failed > 0) logger.info('The operator accepts heartbeats again.')
      this.#failed = 0
    } catch (error) {
      if (this.#ending.signal.aborted) return
      metrics.counter('heartbeat_failures_total').add(1)
      if (this.#failed === 0)
        logger.warn({ error: errorText(error) }, 'The report to the operator failed; the agent continues.')
      this.#failed++
    }
  }

  #body(counts: ReadonlyMap<string, Counts>): HeartbeatBody {
    const { node, pod, namespace, leftovers } = this.#options
    const left = leftovers?.found() ?? []
    const { failures, ...state } = this.#runner.state
    return {
      schema: 1,
      node,
      pod,
      namespace,
      version,
      startedAt: this.#startedAt,
      ...state,
      failures: failures.slice(0, maxFailures),
      failed: failures.map((failure) => failure.pipeline),
      pipelines: this.#reports(counts),
      reading: this.#runner.reading(),
      ...(left.length === 0 ? {} : { leftovers: left }),
    }
  }

  /** The figures of each pipeline since the agent started, except idle pipelines. */
  figures(): Readonly<Record<string, PipelineReport>> {
    return this.#reports(countsIn(this.#options.metrics), new Map())
  }

  #reports(counts: ReadonlyMap<string, Counts>, earlier = this.#reported): Record<string, PipelineReport> {
    const reports: Record<string, PipelineReport> = {}
    const { sources, transforms, sinks } = this.#topology
    const byPipeline = Map.groupBy([...sources.keys(), ...transforms.keys(), ...sinks.keys()], pipelineOf)
    for (const { id, part } of this.#runner.pipelines()) {
      let eventsIn = 0
      let eventsOut = 0
      let filtered = 0
      let dropped = 0
      let lostBytes = 0
      let errors = 0
      let bufferedEvents = 0
      let bufferedBytes = 0
      let bufferUse = 0
      let lagSeconds = 0
      const components: Record<string, ComponentReport> = {}
      for (const component of byPipeline.get(id) ?? []) {
        const now = counts.get(component)
        const before = earlier.get(component)
        const since = (name: keyof Counts) => Math.max(0, (now?.[name] ?? 0) - (before?.[name] ?? 0))
        const kind = sources.has(component) ? 'source' : transforms.has(component) ? 'transform' : 'sink'
        const sent = since('component_sent_events_total')
        const aside = since('filtered')
        const lost = since('component_discarded_events_total') - aside + since('buffer_discarded_events_total')
        const failed = since('component_errors_total')
        if (kind === 'source') {
          eventsIn += sent
          lagSeconds = Math.max(lagSeconds, sources.get(component)?.source.lagSeconds?.() ?? 0)
        }
        if (kind === 'sink') {
          eventsOut += sent
          const buffer = sinks.get(component)?.buffer
          bufferedEvents += buffer?.events ?? 0
          bufferedBytes += buffer?.bytes ?? 0
          bufferUse = Math.max(bufferUse, buffer === undefined ? 0 : useOf(buffer))
        }
        filtered += aside
        dropped += lost
        lostBytes += since('log_bytes_lost_total')
        errors += failed
        const complaint = this.#lastErrors.get(component)
        const lastError = complaint?.isReported === false ? complaint.error : undefined
        if (failed > 0 || lost > 0 || lastError !== undefined || (kind === 'sink' && sent > 0)) {
          const report = { kind, errors: failed, dropped: lost, sent: kind === 'sink' ? sent : 0 } as const
          components[nameOf(component)] = lastError === undefined ? report : { ...report, lastError }
        }
      }
      const isIdle = eventsIn + eventsOut + dropped + errors + bufferedEvents + lagSeconds === 0
      if (isIdle && Object.keys(components).length === 0) continue
      const { generation, uid, hash } = part.pipeline
      reports[id] = {
        generation,
        uid,
        hash,
        eventsIn,
        eventsOut,
        filtered,
        dropped,
        lostBytes,
        errors,
        bufferedEvents,
        bufferedBytes,
        bufferUse,
        lagSeconds: Math.round(lagSeconds * 10) / 10,
        components,
      }
    }
    return reports
  }

  /**
   * Forgets the errors of removed components, and of components that have worked without a new error since the last report.
   */
  #settle(counts: ReadonlyMap<string, Counts>): void {
    const { sources, transforms, sinks } = this.#topology
    for (const [id, { isReported }] of this.#lastErrors) {
      if (!isReported) continue
      const now = counts.get(id)
      const before = this.#reported.get(id)
      const since = (name: keyof Counts) => (now?.[name] ?? 0) - (before?.[name] ?? 0)
      const isWell =
        since('component_errors_total') === 0 && (!sinks.has(id) || since('component_sent_events_total') > 0)
      const isThere = sources.has(id) || transforms.has(id) || sinks.has(id)
      if (isWell || !isThere) this.#lastErrors.delete(id)
    }
  }

  /** Stores a component's last error. Records of a tenant's components contain only facts: see telemetry/facts.ts. */
  #hear(record: LogRecord): void {
    const { component_id: id, level, message, timestamp } = record
    if (typeof id !== 'string' || !id.includes('/') || (level !== 'error' && level !== 'warn')) return
    // A notice about a suppressed message is not a new error; the message itself was one.
    if (record['suppressed_message'] !== undefined) return
    const known = this.#lastErrors.get(id)
    const at = String(timestamp)
    if (record['intentional'] !== undefined) {
      // An earlier error explains dropped events. Without one, the drop is reported itself.
      if (known?.isReported === false) return
      const reason = typeof record['reason'] === 'string' ? record['reason'] : message
      const cause = known?.error ?? { reason: 'Error', message: String(reason).slice(0, 512) }
      this.#lastErrors.set(id, { error: { ...cause, at }, isReported: false })
      return
    }
    const error = record['error'] as LoggedError | string | undefined
    const text = typeof error === 'object' ? error.message : error
    const status = numberIn(record['status']) ?? numberIn(typeof error === 'object' ? error.status : undefined)
    const itemStatus = record['item_status']
    const type = typeof record['error_type'] === 'string' ? ` (${record['error_type']})` : ''
    // The status for one event of a request that the destination accepted.
    const ofItem = typeof itemStatus === 'number' ? ` Status ${itemStatus} of an event${type}.` : type
    const isLate = record['error_type'] === 'timed_out'
    const timeoutMs = numberIn(record['timeout_ms'])
    const late = timeoutMs === undefined ? ' No answer in time.' : ` No answer within ${timeoutMs / 1000} s.`
    const otherwise = status !== undefined ? ` Status ${status}.` : isLate ? late : ofItem
    const detail = typeof text === 'string' ? ` ${text}` : otherwise
    const given = typeof error === 'object' ? error.kind : kindOfCode(String(record['error_kind'] ?? ''))
    const kind = given ?? (isLate ? 'connection' : undefined)
    const closed = record['component_kind'] === 'source' && kind === 'permission'
    const reason = closed ? 'LogsUnreadable' : reasonOf(status, kind)
    this.#lastErrors.set(id, {
      error: {
        reason: typeof itemStatus === 'number' ? 'EventsRejected' : reason,
        message: `${String(message)}${detail}${closed ? ` File: ${record['file']}.${unreadableHelp}` : ''}`.slice(
          0,
          512,
        ),
        at,
      },
      isReported: false,
    })
    if (known === undefined && record['component_kind'] === 'sink') this.#reportSoon()
  }
}

/** The last error of a component. */
interface Complaint {
  readonly error: LastError
  /** Whether the operator has received it. */
  readonly isReported: boolean
}

/** For nodes whose log files are not readable for the agents' group. */
const unreadableHelp = ' Set `node.runAsRoot: true` of the Agent, or open the files to the group 0.'

/** The period that a response asks for; the default if it asks for none. */
function answerIn(body: Buffer): Required<HeartbeatAnswer> {
  const { minMs, defaultMs, maxMs } = heartbeatPeriods
  let answer: HeartbeatAnswer | null
  try {
    answer = JSON.parse(body.toString('utf8')) as HeartbeatAnswer | null
  } catch {
    answer = null // an operator of another version, or a proxy in front of it
  }
  const { periodMs: period, gone, denied } = answer ?? {}
  const periodMs =
    typeof period === 'number' && Number.isFinite(period) ? Math.min(maxMs, Math.max(minMs, period)) : defaultMs
  const texts = (value: unknown): string[] =>
    Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
  return { periodMs, gone: texts(gone), denied: texts(denied).slice(0, maxDenied) }
}

/** Fill level of a buffer, from 0 to 1. */
export function useOf({ events, bytes, limit }: SinkBuffer): number {
  return Math.max(
    limit.events === undefined ? 0 : events / limit.events,
    limit.bytes === undefined ? 0 : bytes / limit.bytes,
  )
}

/** An error in a log record. */
interface LoggedError {
  readonly message?: unknown
  readonly kind?: FailureKind
  readonly status?: unknown
}

const numberIn = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Why a destination is not reachable, as worded in the condition. */
function reasonOf(status: number | undefined, kind: FailureKind | undefined): string {
  if (status === 401 || status === 403) return 'Unauthorized'
  if (status !== undefined) return 'Rejecting'
  if (kind === 'tls') return 'TLSFailed'
  return kind === 'connection' ? 'ConnectFailed' : 'Error'
}
