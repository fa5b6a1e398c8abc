// Builds single components from user options through the registry, and observes their external effects.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  AnyDeclaration,
  Globals,
  OptionProblem,
  OriginTags,
  Sink,
  SinkDeclaration,
  Source,
  SourceDeclaration,
  Transform,
  TransformDeclaration,
} from '../component.ts'
import { optionsOf } from '../config/component-options.ts'
import { type Batch, logBatch, metricBatch } from '../event/batch.ts'
import { type BatchStatus, Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import type { EgressOptions } from '../net/egress.ts'
import { findComponent } from '../registry.ts'
import type { ProgramRules } from '../remap/rules.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { parseOptions } from '../schema/validate.ts'
import type { ComponentEvents, ErrorReport } from '../telemetry/component-events.ts'
import { Fact } from '../telemetry/facts.ts'
import { silentLogger } from '../telemetry/logger.ts'

const noProxy: ProxyOptions = { enabled: true, http: undefined, https: undefined, no_proxy: undefined }

/** Global settings with default values and the caller's data directory. */
export function testGlobals(dataDir: string): Globals {
  return {
    dataDir,
    timezone: 'UTC',
    logSchema: {
      messageKey: 'message',
      timestampKey: 'timestamp',
      hostKey: 'host',
      sourceTypeKey: 'source_type',
      metadataKey: 'metadata',
    },
    proxy: noProxy,
  }
}

/** The fields of a report as in the log. */
function asLogged(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const text = (value: unknown): unknown => (value instanceof Fact ? value.text : value)
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, Array.isArray(value) ? value.map(text) : text(value)]),
  )
}

/** Counts the reports of a component by metric name. */
export class RecordedEvents implements ComponentEvents {
  readonly counts = new Map<string, number>()
  readonly errors: ErrorReport[] = []
  readonly gauges = new Map<string, number>()
  readonly discards: { readonly events: number; readonly intentional: boolean; readonly reason: string | undefined }[] =
    []

  #add(name: string, by: number): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + by)
  }
  receivedBytes(bytes: number): void {
    this.#add('component_received_bytes_total', bytes)
  }
  received(events: number): void {
    this.#add('component_received_events_total', events)
  }
  sent(events: number, _bytes: number, output?: string): void {
    this.#add(output === undefined ? 'component_sent_events_total' : `component_sent_events_total ${output}`, events)
  }
  sentBytes(bytes: number): void {
    this.#add('component_sent_bytes_total', bytes)
  }
  error(report: ErrorReport): void {
    this.errors.push(report.fields === undefined ? report : { ...report, fields: asLogged(report.fields) })
    this.#add('component_errors_total', report.count ?? 1)
  }
  discarded(events: number, intentional: boolean, reason?: string): void {
    this.discards.push({ events, intentional, reason })
    this.#add(`component_discarded_events_total intentional=${intentional}`, events)
  }
  count(name: string, by = 1): void {
    this.#add(name, by)
  }
  gauge(name: string, value: number): void {
    this.gauges.set(name, value)
  }
  observe(name: string): void {
    this.#add(name, 1)
  }
}

export function parsed(declaration: AnyDeclaration, options: unknown): never {
  const checked = parseOptions(optionsOf(declaration).members, options)
  if (!checked.ok) throw new Error(checked.problems.map((problem) => `${problem.path}: ${problem.message}`).join('\n'))
  return checked.value as never
}

function declared(kind: AnyDeclaration['kind'], type: string): AnyDeclaration {
  const declaration = findComponent(kind, type)
  if (declaration === undefined) throw new Error(`There is no ${kind} of type ${type}.`)
  return declaration
}

/** The problems that a component's own check finds in options that match their schema. */
export function problemsOf(kind: AnyDeclaration['kind'], type: string, options: object): readonly OptionProblem[] {
  const declaration = declared(kind, type)
  return declaration.check?.(parsed(declaration, options), testGlobals(tmpdir())) ?? []
}

export interface TestSink extends AsyncDisposable {
  readonly sink: Sink
  readonly events: RecordedEvents
  /** Writes the events as one batch, flushes and closes the sink, and returns the status of the finalizer. */
  deliver(events: readonly (LogEvent | MetricEvent)[]): Promise<BatchStatus>
  /** Writes the events as one batch; the promise resolves to their status. Does not flush. */
  write(events: readonly (LogEvent | MetricEvent)[]): Promise<BatchStatus>
}

/**
 * Builds a sink from user options. Call `deliver` only once, because it closes the sink.
 * @param sink the type of a sink, or a declaration with a replaced part
 */
export async function startSink(
  sink: string | SinkDeclaration,
  options: object,
  globals?: Partial<Globals>,
  proxy: typeof noProxy & { readonly egress?: EgressOptions } = noProxy,
): Promise<TestSink> {
  const declaration = typeof sink === 'string' ? (declared('sink', sink) as SinkDeclaration) : sink
  const dataDir = await mkdtemp(join(tmpdir(), 'penstock-sink-'))
  const abandon = new AbortController()
  const events = new RecordedEvents()
  const built = await declaration.build(parsed(declaration, options), {
    id: 'out',
    type: declaration.type,
    kind: 'sink',
    globals: { ...testGlobals(dataDir), ...globals },
    logger: silentLogger,
    events,
    proxy,
    abandoning: abandon.signal,
  })
  const write = (batchEvents: readonly (LogEvent | MetricEvent)[]): Promise<BatchStatus> =>
    new Promise((resolve, reject) => {
      const taken = built.write(batchOf(batchEvents, new Finalizer(resolve)))
      taken?.catch(reject)
    })
  return {
    sink: built,
    events,
    write,
    async deliver(batchEvents) {
      const status = write(batchEvents)
      await built.close()
      return status
    },
    async [Symbol.asyncDispose]() {
      abandon.abort()
      await built.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** A batch of events of one type. */
export function batchOf(events: readonly (LogEvent | MetricEvent)[], finalizer = new Finalizer()): Batch {
  return events[0] === undefined || events[0] instanceof LogEvent
    ? logBatch(events as LogEvent[], finalizer)
    : metricBatch(events as MetricEvent[], finalizer)
}

export interface TestSource extends AsyncDisposable {
  readonly source: Source
  readonly events: RecordedEvents
  /** Everything sent so far. */
  readonly sent: (LogEvent | MetricEvent)[]
  /** Resolves when at least this many events have been sent; rejects after 10 seconds. */
  received(count: number): Promise<(LogEvent | MetricEvent)[]>
  /** Stops the source, and waits for its end. */
  stop(): Promise<void>
  readonly dataDir: string
}

export interface TestSourceOptions {
  readonly globals?: Partial<Globals>
  readonly dataDir?: string
  /** Whether the source replaces one that has just ended, as in a reload. */
  readonly replaces?: boolean
  /** The last time at which a predecessor on another agent was known to run. */
  readonly precededUntil?: () => number | undefined
  /** Proxies and denied addresses. */
  readonly proxy?: ProxyOptions & { readonly egress?: EgressOptions }
  /** The folder that must contain all files. */
  readonly confinedTo?: string
  /** Whether a sink requires acknowledgement only after delivery; true by default. */
  readonly acknowledgements?: boolean
  /** Whether lines may be passed as bytes; true by default. */
  readonly takesBytes?: boolean
  /** Called with a batch before its events are created; returns the events that count as sent. */
  readonly look?: (batch: Batch) => readonly (LogEvent | MetricEvent)[]
  /** The outcome of each batch; delivered by default. It may wait, as a full buffer does. */
  readonly consume?: (batch: Batch, origin?: OriginTags) => Promise<void> | undefined
}

/** Builds a source from user options and runs it. Keeps the events that it sends, and acknowledges them as delivered. */
export async function startSource(type: string, options: object, extra: TestSourceOptions = {}): Promise<TestSource> {
  const declaration = declared('source', type) as SourceDeclaration
  const dataDir = extra.dataDir ?? (await mkdtemp(join(tmpdir(), 'penstock-source-')))
  const stopping = new AbortController()
  const events = new RecordedEvents()
  const sent: (LogEvent | MetricEvent)[] = []
  let arrived = () => {}
  const source = await declaration.build(parsed(declaration, options), {
    id: 'in',
    type,
    kind: 'source',
    globals: { ...testGlobals(dataDir), ...extra.globals },
    logger: silentLogger,
    events,
    proxy: extra.proxy ?? noProxy,
    acknowledgements: extra.acknowledgements ?? true,
    stopping: stopping.signal,
    replaces: extra.replaces ?? false,
    precededUntil: extra.precededUntil,
    confinedTo: extra.confinedTo,
    output: {
      takesBytes: extra.takesBytes ?? true,
      send(batch, origin) {
        events.received(batch.count)
        if (extra.look !== undefined) sent.push(...extra.look(batch))
        else sent.push(...batch.events)
        arrived()
        if (extra.consume !== undefined) return extra.consume(batch, origin)
        batch.finalizer.release(1, 'delivered')
        return undefined
      },
    },
  })
  const running = source.run()
  let failure: unknown
  running.catch((error: unknown) => {
    failure = error
    arrived()
  })
  return {
    source,
    events,
    sent,
    dataDir,
    received: (count) =>
      new Promise((resolve, reject) => {
        const limit = setTimeout(
          () => reject(new Error(`Only ${sent.length} of ${count} events arrived in 10 seconds.`)),
          10_000,
        )
        const check = () => {
          if (failure === undefined && sent.length < count) return
          clearTimeout(limit)
          arrived = () => {}
          if (failure === undefined) resolve(sent)
          else reject(failure)
        }
        arrived = check
        check()
      }),
    async stop() {
      stopping.abort()
      await running
      await source.settle?.()
    },
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await running.catch(() => {}) // `received` or `stop` reports a failure
      if (extra.consume === undefined) await source.settle?.()
      if (extra.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Builds a transform from user options. */
export async function buildTransform(
  type: string,
  options: object,
  events: ComponentEvents = new RecordedEvents(),
  programs?: ProgramRules,
  globals?: Partial<Globals>,
): Promise<Transform> {
  const declaration = declared('transform', type) as TransformDeclaration
  return declaration.build(parsed(declaration, options), {
    id: 'change',
    type,
    kind: 'transform',
    globals: { ...testGlobals(tmpdir()), ...(programs && { programs }), ...globals },
    logger: silentLogger,
    events,
  })
}

/** Passes events through one transform, and returns the emitted events by output (`''` is the default output). */
export async function runTransform(
  type: string,
  options: object,
  input: readonly (LogEvent | MetricEvent)[],
  events = new RecordedEvents(),
): Promise<Map<string, (LogEvent | MetricEvent)[]>> {
  const transform = await buildTransform(type, options, events)
  const outputs = new Map<string, (LogEvent | MetricEvent)[]>()
  await transform.transform(batchOf(input), {
    send(batch, port = '') {
      outputs.set(port, [...(outputs.get(port) ?? []), ...batch.events])
      return undefined
    },
  })
  transform.close?.()
  return outputs
}
