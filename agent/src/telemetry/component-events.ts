// The one way in which components count: events received and sent, errors and discards, each as metric and log together.
// Counts are per batch, never per event; equal messages of one component are limited.

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
  /** Tag `error_code`, where the sheet names one. */
  readonly code?: string
  /** Further tags, where the sheet names them. */
  readonly tags?: Readonly<Record<string, string>>
  /** A constant sentence. */
  readonly message: string
  /** For the log; never secrets. Of a tenant's component, numbers and what `fact` declares are shown, and the class of errors. */
  readonly fields?: Readonly<Record<string, unknown>>
  /** How many errors of this sort; 1 if not given. */
  readonly count?: number
  /** Log level; `error` if not given. */
  readonly level?: 'error' | 'warn' | 'debug'
}

export interface ComponentEvents {
  /** Raw bytes taken from the origin (sources). */
  receivedBytes(bytes: number, tags?: Readonly<Record<string, string>>): void
  /** Events taken in. */
  received(events: number, bytes: number, origin?: Readonly<Record<string, string>>): void
  /** Events passed on or delivered; `output` for named outputs. */
  sent(events: number, bytes: number, output?: string): void
  /** Bytes sent over the network, after compression (sinks). */
  sentBytes(bytes: number, tags?: Readonly<Record<string, string>>): void
  error(report: ErrorReport): void
  /** Events that will not continue, with a constant sentence that says why. */
  discarded(events: number, intentional: boolean, reason: string): void
  /** A counter of the component's own; the name must be one of telemetry/metric-table.ts. */
  count(name: string, by?: number, tags?: Readonly<Record<string, string>>): void
  /** A gauge of the component's own. */
  gauge(name: string, value: number, tags?: Readonly<Record<string, string>>): void
  /** An observation for a histogram of the component's own. */
  observe(name: string, value: number, tags?: Readonly<Record<string, string>>): void
}

/** For use outside a running topology: checks and tests that do not look at metrics. */
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

/** Counts of one component in the agent's metrics, and its errors in the log, equal messages limited. */
export class CountedEvents implements ComponentEvents {
  readonly #metrics: Metrics
  readonly #logger: Logger
  readonly #limit: RepetitionLimit
  readonly #identity: Labels
  /** Without origin. A source gets it at its first batch without one: most have an origin for every batch. */
  #received: Pair | undefined
  readonly #batches: HistogramSeries
  readonly #sent: Pair
  readonly #outputs = new Map<string, Pair>()
  // A source hands over the same tags object for all batches of a file or a peer: one look-up by identity.
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

/** The series of one metric and component, found by the identity of the tags object before its content. */
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
