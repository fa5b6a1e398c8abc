// Requests from observers of a Pipeline, through the operator: a sample of its events, or its figures. Agents never accept
// connections, so the operator holds an agent's request until an observer needs data. The agent then sends answers at short
// intervals until the operator reports that the observer has disconnected. Without an observer it does no work.

import { setTimeout as sleep } from 'node:timers/promises'
import { Tap } from '../api/tap.ts'
import type { LogPosition } from '../component.ts'
import { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField } from '../event/value.ts'
import type { Logger } from '../telemetry/logger.ts'
import { doubledMs, jittered } from '../timing/backoff.ts'
import type { Observer, Outlet } from '../topology/fanout.ts'
import type { Topology } from '../topology/run.ts'
import { holdMs, pipelineOf } from './format.ts'
import type { PipelineReport } from './heartbeat.ts'
import { type OperatorAddress, OperatorClient } from './operator-client.ts'

interface AnyInquiry {
  readonly id: string
  /** Time between two answers. */
  readonly intervalMs: number
  /** Maximum duration. */
  readonly forMs: number
}

/** Events of one pipeline, as lines of JSON. */
export interface TapInquiry extends AnyInquiry {
  readonly kind: 'tap'
  readonly pipeline: string
  /** Outputs of a source or transform, or the inputs of a sink; all outputs if absent. */
  readonly component?: { readonly name: string; readonly kind: 'source' | 'transform' | 'sink' }
  /** Maximum number of events in an answer. */
  readonly limit: number
}

/** The figures of pipelines since the agent started. */
export interface FiguresInquiry extends AnyInquiry {
  readonly kind: 'figures'
  /** All if absent. */
  readonly pipelines?: readonly string[]
  /** Uid of a pod: the answer then includes the pipelines' positions in its logs. */
  readonly pod?: string
}

export type Inquiry = TapInquiry | FiguresInquiry

/** An agent's request for inquiries. */
export interface InquiriesBody {
  /** Ids of the inquiries that it is answering. */
  readonly serving: readonly string[]
}

export interface InquiriesAnswer {
  readonly inquiries: readonly Inquiry[]
}

export type Figures = Pick<
  PipelineReport,
  'eventsIn' | 'eventsOut' | 'dropped' | 'errors' | 'bufferedEvents' | 'bufferedBytes'
> & {
  /** Age of the oldest unread log line, or of the newest event when it was read; absent for pipelines without log files. */
  readonly lagSeconds?: number
  /** Its read positions in the logs of the requested pod. */
  readonly positions?: readonly LogPosition[]
}

export interface FiguresAnswer {
  readonly pipelines: Readonly<Record<string, Figures>>
}

export interface InquiryOptions extends OperatorAddress {
  readonly logger: Logger
  readonly topology: Topology
  /** Returns the figures of each pipeline since the start. */
  readonly figures: () => Readonly<Record<string, Omit<Figures, 'positions'> & { readonly lagSeconds: number }>>
}

const requestMs = 10_000
/** Wait after a failure, during which the operator may move to another node. */
const retryMs = { min: 5_000, max: 30_000 }
/** The operator holds as many requests as it can, so the agent polls. */
const crowdedMs = 60_000
/** Wait for an operator that does not support inquiries. */
const unknownMs = 600_000
const maxServed = 8
const maxMs = 3_600_000
/** Limit for one answer to a tap; further events are skipped and counted. */
const maxBytes = 256 * 1024
const maxEventBytes = 64 * 1024

export class InquiryAnswers {
  readonly #options: InquiryOptions
  readonly #client: OperatorClient
  readonly #ending = new AbortController()
  readonly #serving = new Map<string, Promise<void>>()
  readonly #asking: Promise<void>

  constructor(options: InquiryOptions) {
    this.#options = options
    this.#client = new OperatorClient(options)
    this.#asking = this.#ask()
  }

  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#asking
    await Promise.all(this.#serving.values())
    await this.#client.close()
  }

  async #ask(): Promise<void> {
    const { signal } = this.#ending
    let failures = 0
    while (!signal.aborted) {
      const started = performance.now()
      let waitMs = 0
      try {
        const body: InquiriesBody = { serving: [...this.#serving.keys()] }
        const limit = AbortSignal.any([signal, AbortSignal.timeout(holdMs + requestMs)])
        const answer = await this.#client.post('/v1/inquiries', body, limit)
        if (answer.status === 200) {
          failures = 0
          const { inquiries } = JSON.parse(answer.body.toString('utf8')) as InquiriesAnswer
          for (const inquiry of inquiries) this.#begin(inquiry)
          // Prevents a busy loop if an operator answers immediately each time.
          waitMs = Math.max(0, 250 - (performance.now() - started))
        } else if (answer.status === 404) waitMs = unknownMs
        else if (answer.status === 429) waitMs = crowdedMs * (0.5 + Math.random() / 2)
        else waitMs = pauseMs(failures++)
      } catch {
        // The heartbeat logs that the operator is unavailable.
        waitMs = pauseMs(failures++)
      }
      await sleep(waitMs, undefined, { signal, ref: false }).catch(() => {}) // the loop condition checks the signal
    }
  }

  #begin(inquiry: Inquiry): void {
    const { id, kind } = inquiry
    if (this.#serving.has(id) || this.#serving.size >= maxServed) return
    const work = (kind === 'tap' ? this.#tap(inquiry) : this.#report(inquiry))
      .catch((error: unknown) => {
        if (!this.#ending.signal.aborted) this.#options.logger.debug({ error }, 'Could not answer an inquiry.')
      })
      .finally(() => this.#serving.delete(id))
    this.#serving.set(id, work)
  }

  async #tap(inquiry: TapInquiry): Promise<void> {
    const { pipeline, component, limit } = inquiry
    // Kubernetes names contain no pattern characters, so no pattern matches outside the pipeline.
    const outputs = component === undefined ? ['*'] : [component.name, `${component.name}.*`]
    const patterns = outputs.map((name) => `${pipeline}/${name}`)
    const ofSink = component?.kind === 'sink'
    using tap = new Tap(
      this.#options.topology,
      { outputsOf: ofSink ? [] : patterns, inputsOf: ofSink ? patterns : [], limit },
      () => {}, // the operator knows whether a component exists
    )
    await this.#turns(inquiry, () => {
      const lines: string[] = []
      let bytes = 0
      let skipped = 0
      for (const kept of tap.drain()) {
        const line = tap.line(kept)
        const length = Buffer.byteLength(line)
        if (length > maxEventBytes || bytes + length > maxBytes) {
          skipped++
          continue
        }
        bytes += length
        lines.push(line)
      }
      skipped += tap.takeMissed()
      if (skipped > 0) lines.push(`${JSON.stringify({ kind: 'skipped', events: skipped })}\n`)
      return Buffer.from(lines.join(''))
    })
  }

  async #report(inquiry: FiguresInquiry): Promise<void> {
    const wanted = inquiry.pipelines === undefined ? undefined : new Set(inquiry.pipelines)
    using lag = new Lag(this.#options.topology, wanted)
    await this.#turns(inquiry, () => {
      const pipelines: Record<string, Figures> = {}
      for (const [id, report] of Object.entries(this.#options.figures())) {
        if (wanted !== undefined && !wanted.has(id)) continue
        const { eventsIn, eventsOut, dropped, errors, bufferedEvents, bufferedBytes } = report
        const read = lag.take(id)
        const lagSeconds = Math.max(report.lagSeconds, read ?? 0)
        pipelines[id] = {
          ...{ eventsIn, eventsOut, dropped, errors, bufferedEvents, bufferedBytes },
          ...(read === undefined && lagSeconds === 0 ? {} : { lagSeconds }),
        }
      }
      if (inquiry.pod !== undefined) {
        for (const [id, positions] of this.#positions(inquiry.pod, wanted))
          pipelines[id] = { ...(pipelines[id] ?? noFigures), positions }
      }
      return { pipelines } satisfies FiguresAnswer
    })
  }

  /** The positions of pipelines in the logs of a pod. */
  #positions(podUid: string, wanted: ReadonlySet<string> | undefined): Map<string, LogPosition[]> {
    const found = new Map<string, LogPosition[]>()
    for (const [id, { source }] of this.#options.topology.sources) {
      const pipeline = pipelineOf(id)
      if (wanted?.has(pipeline) === false) continue
      const positions = source.positions?.(podUid) ?? []
      if (positions.length > 0) found.set(pipeline, [...(found.get(pipeline) ?? []), ...positions])
    }
    return found
  }

  /** Answers repeatedly until the inquiry ends. */
  async #turns({ id, intervalMs, forMs }: Inquiry, answer: () => Buffer | object): Promise<void> {
    const over = AbortSignal.any([this.#ending.signal, AbortSignal.timeout(Math.min(forMs, maxMs))])
    const path = `/v1/inquiries/${encodeURIComponent(id)}`
    while (!over.aborted) {
      const limit = AbortSignal.any([this.#ending.signal, AbortSignal.timeout(requestMs)])
      const { status } = await this.#client.post(path, answer(), limit)
      if (status !== 200) return
      await sleep(Math.max(100, intervalMs), undefined, { signal: over, ref: false }).catch(() => {}) // checked above
    }
  }
}

const noFigures: Figures = { eventsIn: 0, eventsOut: 0, dropped: 0, errors: 0, bufferedEvents: 0, bufferedBytes: 0 }

function pauseMs(failures: number): number {
  return jittered(doubledMs(failures, retryMs.min, retryMs.max), 'half')
}

/** Age of events when they leave the sources of pipelines; only measured during an inquiry. */
class Lag implements Disposable {
  readonly #topology: Topology
  readonly #wanted: ReadonlySet<string> | undefined
  /** Age of the last batch in milliseconds, by pipeline. */
  readonly #ages = new Map<string, number>()
  readonly #unlisten: () => void
  #watched: (readonly [Outlet, Observer])[] = []

  constructor(topology: Topology, wanted: ReadonlySet<string> | undefined) {
    this.#topology = topology
    this.#wanted = wanted
    this.#unlisten = topology.onChange(() => this.#attach())
    this.#attach()
  }

  /** Age of the last batch since the last call, in seconds. */
  take(pipeline: string): number | undefined {
    const age = this.#ages.get(pipeline)
    this.#ages.delete(pipeline)
    return age === undefined ? undefined : age / 1000
  }

  [Symbol.dispose](): void {
    this.#unlisten()
    this.#detach()
  }

  #detach(): void {
    for (const [outlet, observer] of this.#watched) outlet.unwatch(observer)
    this.#watched = []
  }

  #attach(): void {
    this.#detach()
    const { timestampKey } = this.#topology.config.globals.logSchema
    for (const [id, { outlet }] of this.#topology.sources) {
      const pipeline = pipelineOf(id)
      if (this.#wanted !== undefined && !this.#wanted.has(pipeline)) continue
      const observer: Observer = {
        look: ({ events, count }) => {
          const event = events[count - 1]
          const time = event instanceof LogEvent ? getField(event.fields, timestampKey) : event?.timestamp
          if (time instanceof Timestamp) this.#ages.set(pipeline, Math.max(0, Date.now() - time.ms))
        },
      }
      outlet.watch(observer)
      this.#watched.push([outlet, observer])
    }
  }
}
