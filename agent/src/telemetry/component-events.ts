// The only interface through which components report received and sent events, errors and discarded events. Each report goes to both
// metrics and the log. Events are counted per batch, never one by one, and the repetition of log messages is limited.

import { fact, facts } from './facts.ts'
import type { Logger } from './logger.ts'
import { metricTable } from './metric-table.ts'
import type { HistogramSeries, Labels, Metrics, Series } from './metrics.ts'
import type { RepetitionLimit } from './repetition-limit.ts'

export type ErrorType =
  | 'acknowledgment_failed'
  | 'authentication_failed'
  | 'command_failed'
  | 'condition_failed'
  | 'configuration_failed'
  | 'connection_failed'
  | 'conversion_failed'
  | 'encoder_failed'
  | 'invalid_metric'
  | 'io_failed'
  | 'parser_failed'
  | 'reader_failed'
  | 'request_failed'
  | 'script_failed'
  | 'template_failed'
  | 'timed_out'
  | 'writer_failed'

export type ErrorStage = 'initializing' | 'receiving' | 'processing' | 'sending'

export interface ErrorReport {
  readonly type: ErrorType
  readonly stage: ErrorStage
  /** The tag `error_code`, if the requirements define one. */
  readonly code?: string
  /** Additional tags, if the requirements define them. */
  readonly tags?: Readonly<Record<string, string>>
  /** A constant sentence. */
  readonly message: string
  /** Fields for the log, without secrets. For a tenant's component, the log shows only numbers, `fact` values and classes of errors. */
  readonly fields?: Readonly<Record<string, unknown>>
  /** Number of errors; 1 by default. */
  readonly count?: number
  /** Log level; `error` by default. */
  readonly level?: 'error' | 'warn' | 'debug'
}

export interface ComponentEvents {
  /** Raw bytes received from the origin (sources). */
  receivedBytes(bytes: number, tags?: Readonly<Record<string, string>>): void
  /** Events received. */
  received(events: number, bytes: number, origin?: Readonly<Record<string, string>>): void
  /** Events sent to the next component or delivered. `output` is the name of a named output. */
  sent(events: number, bytes: number, output?: string): void
  /** Bytes sent over the network, after compression (sinks). */
  sentBytes(bytes: number, tags?: Readonly<Record<string, string>>): void
  error(report: ErrorReport): void
  /** Discarded events, with the reason as a constant sentence. */
  discarded(events: number, intentional: boolean, reason: string): void
  /** A counter of the component; its name must be in telemetry/metric-table.ts. */
  count(name: string, by?: number, tags?: Readonly<Record<string, string>>): void
  /** A gauge of the component. */
  gauge(name: string, value: number, tags?: Readonly<Record<string, string>>): void
  /** An observation for a histogram of the component. */
  observe(name: string, value: number, tags?: Readonly<Record<string, string>>): void
}

/** For use outside a running topology, in checks and in tests that do not need metrics. */
export function loggingEvents(logger: Logger): ComponentEvents {
  return {
    receivedBytes() {},
    received() {},
    sent() {},
    sentBytes() {},
    error: (report) => logger[report.level ?? 'error'](report.fields ?? {}, report.message),
    discarded() {},
    count() {},
    gauge() {},
    observe() {},
  }
}

interface Identity {
  readonly id: string
  readonly kind: string
  readonly type: string
}

interface Pair {
  readonly events: Series
  readonly bytes: Series
}

/** Reports to the agent's metrics and to the log for one component, and limits repeated messages. */
export class CountedEvents implements ComponentEvents {
  readonly #metrics: Metrics
  readonly #logger: Logger
  readonly #limit: RepetitionLimit
  readonly #identity: Labels
  /** For batches without an origin. A source creates it on its first such batch, because most sources have an origin for every batch. */
  #received: Pair | undefined
  readonly #batches: HistogramSeries
  readonly #sent: Pair
  readonly #outputs = new Map<string, Pair>()
  // A source passes the same tags object for all batches of a file or a peer, so a lookup by identity is sufficient.
  readonly #origins = new WeakMap<object, Pair>()
  readonly #receivedBytes = new ByTags(made)
  readonly #sentBytes = new ByTags(made)
  readonly #others = new Map<string, ByTags<Series>>()
  readonly #histograms = new Map<string, ByTags<HistogramSeries>>()

  constructor(metrics: Metrics, logger: Logger, limit: RepetitionLimit, component: Identity) {
    this.#metrics = metrics
    this.#logger = logger
    this.#limit = limit
    this.#identity = { component_id: component.id, component_kind: component.kind, component_type: component.type }
    if (component.kind !== 'source') this.#received = this.#pair('received', {})
    this.#batches = metrics.histogram('component_received_events_count', this.#identity)
    this.#sent = this.#pair('sent', {})
  }

  #pair(direction: 'received' | 'sent', tags: Labels): Pair {
    const labels = { ...this.#identity, ...tags }
    return {
      events: this.#metrics.counter(`component_${direction}_events_total`, labels),
      bytes: this.#metrics.counter(`component_${direction}_event_bytes_total`, labels),
    }
  }

  receivedBytes(bytes: number, tags?: Labels): void {
    this.#receivedBytes.of(tags, this.#metrics, 'component_received_bytes_total', this.#identity).add(bytes)
  }

  received(events: number, bytes: number, origin?: Labels): void {
    let pair: Pair | undefined
    if (origin === undefined) {
      this.#received ??= this.#pair('received', {})
      pair = this.#received
    } else {
      pair = this.#origins.get(origin)
      if (pair === undefined) {
        pair = this.#pair('received', origin)
        this.#origins.set(origin, pair)
      }
    }
    pair.events.add(events)
    pair.bytes.add(bytes)
    this.#batches.observe(events)
  }

  sent(events: number, bytes: number, output?: string): void {
    let pair = this.#sent
    if (output !== undefined) {
      const known = this.#outputs.get(output)
      if (known === undefined) {
        pair = this.#pair('sent', { output })
        this.#outputs.set(output, pair)
      } else {
        pair = known
      }
    }
    pair.events.add(events)
    pair.bytes.add(bytes)
  }

  sentBytes(bytes: number, tags?: Labels): void {
    this.#sentBytes.of(tags, this.#metrics, 'component_sent_bytes_total', this.#identity).add(bytes)
  }

  error(report: ErrorReport): void {
    const tags: Record<string, string> = { error_type: report.type, stage: report.stage }
    if (report.code !== undefined) tags['error_code'] = report.code
    for (const name in report.tags) tags[name] = report.tags[name] as string
    this.#metrics.counter('component_errors_total', { ...this.#identity, ...tags }).add(report.count ?? 1)
    this.#limit.log(this.#logger, report.level ?? 'error', { ...facts(tags), ...report.fields }, report.message)
  }

  discarded(events: number, intentional: boolean, reason: string): void {
    if (events === 0) return
    const tags = intentional ? discardedOnPurpose : discardedByError
    this.#other('component_discarded_events_total', tags).add(events)
    const level = intentional ? 'debug' : 'error'
    if (this.#logger.isLevelEnabled(level)) {
      this.#limit.log(
        this.#logger,
        level,
        { count: events, intentional, reason: fact(reason) },
        'Events dropped.',
        `discarded ${reason}`,
      )
    }
  }

  count(name: string, by = 1, tags?: Labels): void {
    this.#other(name, tags).add(by)
  }

  gauge(name: string, value: number, tags?: Labels): void {
    this.#other(name, tags).set(value)
  }

  observe(name: string, value: number, tags?: Labels): void {
    let byTags = this.#histograms.get(name)
    if (byTags === undefined) {
      byTags = new ByTags(madeHistogram)
      this.#histograms.set(name, byTags)
    }
    byTags.of(tags, this.#metrics, name, this.#identity).observe(value)
  }

  #other(name: string, tags: Labels | undefined): Series {
    let byTags = this.#others.get(name)
    if (byTags === undefined) {
      byTags = new ByTags(made)
      this.#others.set(name, byTags)
    }
    return byTags.of(tags, this.#metrics, name, this.#identity)
  }
}

const discardedOnPurpose = { intentional: 'true' }
const discardedByError = { intentional: 'false' }

/** The series of one metric and component, cached by the identity of the tags object. */
class ByTags<S> {
  #plain: S | undefined
  readonly #byIdentity = new WeakMap<object, S>()
  readonly #make: (metrics: Metrics, name: string, labels: Labels) => S

  constructor(make: (metrics: Metrics, name: string, labels: Labels) => S) {
    this.#make = make
  }

  of(tags: Labels | undefined, metrics: Metrics, name: string, identity: Labels): S {
    if (tags === undefined) {
      this.#plain ??= this.#make(metrics, name, identity)
      return this.#plain
    }
    let series = this.#byIdentity.get(tags)
    if (series === undefined) {
      series = this.#make(metrics, name, { ...identity, ...tags })
      this.#byIdentity.set(tags, series)
    }
    return series
  }
}

function made(metrics: Metrics, name: string, labels: Labels): Series {
  return isGauge(name) ? metrics.gauge(name, labels) : metrics.counter(name, labels)
}

function madeHistogram(metrics: Metrics, name: string, labels: Labels): HistogramSeries {
  return metrics.histogram(name, labels)
}

function isGauge(name: string): boolean {
  return Object.hasOwn(metricTable, name) && metricTable[name as keyof typeof metricTable].type === 'gauge'
}
