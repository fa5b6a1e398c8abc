// Builds running components from a checked configuration. An error names the component that cannot be built; no events
// move yet.

import { type DiskBufferOptions, type SinkBuffer, showBuffer } from '../buffers/buffer.ts'
import { bufferFolder } from '../buffers/folder.ts'
import { MemoryBuffer } from '../buffers/memory.ts'
import {
  type ComponentKind,
  type ProgramLog,
  type Sink,
  type Source,
  type SourceOutput,
  Succession,
  type Transform,
  type TransformOutput,
  type Turns,
} from '../component.ts'
import { minDiskBuffer } from '../config/component-options.ts'
import type { ConfigGlobals, SinkConfig, SourceConfig, TransformConfig } from '../config/config.ts'
import { PenstockError } from '../errors.ts'
import { type Batch, finalizeBatch } from '../event/batch.ts'
import type { EventStatus } from '../event/finalizer.ts'
import { type ComponentEvents, CountedEvents } from '../telemetry/component-events.ts'
import { factsOnly, factText } from '../telemetry/facts.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Labels, Metrics } from '../telemetry/metrics.ts'
import { RepetitionLimit } from '../telemetry/repetition-limit.ts'
import { DeadLetters, type DeadLetterTarget } from './dead-letters.ts'
import type { CpuAccount, FairShare } from './fair-share.ts'
import { type Consumer, Outlet, Pressure } from './fanout.ts'
import { type Leadership, singletonSource } from './singleton.ts'
import { SinkDriver } from './sink-driver.ts'
import { SinkWait } from './sink-wait.ts'
import { Stopwatch, UtilizationMeter } from './utilization.ts'

/** Default for the maximum number of events in a memory buffer. */
const defaultMaxEvents = 500

/** State that all components of a topology share. */
export interface TopologyContext {
  readonly globals: ConfigGlobals
  readonly logger: Logger
  readonly metrics: Metrics
  /** Time window in which equal messages of a component are limited; 0 disables the limit. */
  readonly logRateLimitMs: number
  readonly pressure: Pressure
  readonly stopwatch: Stopwatch
  /** Aborts when the time limit for a graceful stop is over. */
  readonly abandoning: AbortSignal
  /** State shared by the sources of a bundle, and the log of its programs: see component.ts. */
  readonly bundle: BundleParts | undefined
}

export interface BundleParts {
  /** Whether sources stay idle: only the events in the buffers are delivered. */
  readonly draining?: boolean
  hub: object | undefined
  /** Whether a component belongs to a tenant: its log and its status then contain only facts. */
  isRestricted?(componentId: string): boolean
  /** Receives the output of a program's `log`; undefined if it goes to the agent's own log. */
  programLog(componentId: string): ProgramLog | undefined
  /** Divides thread time among pipelines, and returns the account of a component's pipeline. */
  readonly shares?: FairShare | undefined
  account?(componentId: string): CpuAccount | undefined
  /** Where events are kept that a sink's destination rejects permanently. */
  deadLetter?(sinkId: string): DeadLetterTarget | undefined
  /** Decides which of the agents that share this bundle runs singleton sources; without it, each agent runs them. */
  readonly leadership?: Leadership | undefined
}

export function topologyContext(
  globals: ConfigGlobals,
  logger: Logger,
  metrics: Metrics,
  abandoning: AbortSignal,
  logRateLimitMs = 10_000,
  bundle?: BundleParts,
): TopologyContext {
  return {
    globals,
    logger,
    metrics,
    logRateLimitMs,
    abandoning,
    bundle,
    pressure: new Pressure(),
    stopwatch: new Stopwatch(),
  }
}

interface Parts {
  readonly logger: Logger
  readonly events: CountedEvents
  readonly limit: RepetitionLimit
  readonly labels: Labels
}

function parts(context: TopologyContext, id: string, kind: ComponentKind, type: string): Parts {
  const labels = { component_id: id, component_kind: kind, component_type: type }
  const isRestricted = context.bundle?.isRestricted?.(id) === true
  const logger = context.logger.child(labels, isRestricted ? { formatters: { log: factsOnly } } : {})
  const limit = new RepetitionLimit(context.logRateLimitMs)
  return { logger, limit, labels, events: new CountedEvents(context.metrics, logger, limit, { id, kind, type }) }
}

/** Runs a component's `build`; adds the component's name to its errors. */
async function built<T>(kind: ComponentKind, id: string, build: () => T | Promise<T>): Promise<T> {
  try {
    return await build()
  } catch (error) {
    const code = error instanceof PenstockError ? error.code : 'PEN_INTERNAL'
    const message = error instanceof Error ? error.message : String(error)
    const name = `${kind[0]?.toUpperCase()}${kind.slice(1)}`
    const summary = `${name} "${id}" cannot be built`
    const fact = `${summary}: ${factText(error)}`
    throw new PenstockError(code, `${summary}: ${message}`, { cause: error, fact, component: id })
  }
}

/** A source that runs or will. */
export interface SourceNode {
  readonly kind: 'source'
  readonly config: SourceConfig
  readonly source: Source
  readonly outlet: Outlet
  readonly events: CountedEvents
  readonly logger: Logger
  readonly limit: RepetitionLimit
  readonly stopping: AbortController
  /** Counts as busy while the source passes on events, and while the next components do not accept them. */
  readonly meter: UtilizationMeter
}

/** @param replaces whether a source with this id has just ended */
export async function buildSource(
  config: SourceConfig,
  context: TopologyContext,
  replaces = false,
): Promise<SourceNode> {
  const { id, declaration } = config
  const { logger, events, limit } = parts(context, id, 'source', declaration.type)
  const outlet = new Outlet(id)
  const stopping = new AbortController()
  const { pressure, stopwatch } = context
  const meter = new UtilizationMeter(context.bundle?.account?.(id))
  let held = 0
  const released = () => {
    held--
    if (held > 0 || meter.waitingSince === undefined) return
    meter.busyMs += performance.now() - meter.waitingSince
    meter.waitingSince = undefined
  }
  const output: SourceOutput = {
    get takesBytes() {
      return outlet.takesBytes
    },
    send(batch, origin) {
      const { count } = batch
      if (count === 0) {
        finalizeBatch(batch, 'dropped')
        return undefined
      }
      const { bytes } = batch
      const outer = stopwatch.enter(meter)
      events.received(count, bytes, origin as Labels | undefined)
      events.sent(count, bytes)
      const wait = pressure.push(outlet, batch)
      stopwatch.leave(outer)
      if (wait === undefined) return undefined
      const since = performance.now()
      held++
      meter.waitingSince ??= since
      return wait.then(() => {
        released()
        events.observe('source_send_latency_seconds', (performance.now() - since) / 1000)
      })
    },
  }
  const build = (signal: AbortSignal, to: SourceOutput): Source | Promise<Source> =>
    declaration.build(config.options, {
      id,
      type: declaration.type,
      kind: 'source',
      globals: context.globals,
      logger,
      events,
      output: to,
      stopping: signal,
      acknowledgements: config.acknowledgements,
      proxy: config.proxy,
      metrics: context.metrics,
      replaces,
      precededUntil: () => context.bundle?.leadership?.precededUntil,
      confinedTo: config.confinedTo,
      subscription: config.subscription,
      hub: context.bundle?.hub,
      turns: turnsOf(meter, context),
    })
  const { draining = false, leadership } = context.bundle ?? {}
  const source = await built('source', id, () => {
    if (draining) return idle(stopping.signal)
    if (leadership === undefined || !declaration.singleton) return build(stopping.signal, output)
    return singletonSource(build, output, stopping.signal, leadership)
  })
  return { kind: 'source', config, source, outlet, events, logger, limit, stopping, meter }
}

/** Exposes metrics that only the active component may expose. */
export function showSource({ config, source, meter }: SourceNode, metrics: Metrics): void {
  const { id, declaration } = config
  const labels = { component_id: id, component_kind: 'source', component_type: declaration.type }
  metrics.computed('utilization', labels, () => meter.average)
  if (source.lagSeconds === undefined) return
  metrics.computed('log_lag_seconds', labels, () => source.lagSeconds?.() ?? 0)
}

/** Requests turns for a source on the thread shared with other pipelines. */
function turnsOf(meter: UtilizationMeter, { bundle, stopwatch }: TopologyContext): Turns | undefined {
  const { account } = meter
  const shares = bundle?.shares
  if (account === undefined || shares === undefined) return undefined
  return {
    next: () => shares.turn(account),
    spend(work) {
      const outer = stopwatch.enter(meter)
      try {
        return work()
      } finally {
        stopwatch.leave(outer)
      }
    },
  }
}

const idle = (stopping: AbortSignal): Source => ({
  run: () => new Promise((done) => stopping.addEventListener('abort', () => done(), { once: true })),
})

/** A transform with its outputs. Batches pass through it synchronously. */
export class TransformNode implements Consumer {
  readonly kind = 'transform'
  config: TransformConfig
  readonly outlets = new Map<string, Outlet>()
  readonly meter: UtilizationMeter
  readonly events: CountedEvents
  readonly logger: Logger
  readonly limit: RepetitionLimit
  readonly #transform: Transform
  readonly #stopwatch: Stopwatch
  readonly #pressure: Pressure
  readonly #output: TransformOutput
  readonly #labels: Labels
  readonly #main: Outlet
  #emitted = 0
  /** Whether `transform` is running; events emitted at other times have no sender to slow down. */
  #inside = false
  /** Batches that the transform has not emitted yet. */
  readonly #waiting = new Set<Promise<void>>()

  constructor(config: TransformConfig, transform: Transform, context: TopologyContext, own: Parts) {
    this.config = config
    this.events = own.events
    this.logger = own.logger
    this.limit = own.limit
    this.#labels = own.labels
    this.#transform = transform
    this.meter = new UtilizationMeter(context.bundle?.account?.(config.id))
    this.#stopwatch = context.stopwatch
    this.#pressure = context.pressure
    this.#main = new Outlet(config.id)
    this.outlets.set('', this.#main)
    for (const port of config.ports) this.outlets.set(port, new Outlet(`${config.id}.${port}`))
    this.#output = { send: (batch, port) => this.#send(batch, port) }
  }

  /** Exposes metrics that only the active component may expose. */
  show(metrics: Metrics): void {
    metrics.computed('utilization', this.#labels, () => this.meter.average)
  }

  #send(batch: Batch, port: string | undefined): Promise<void> | undefined {
    this.#emitted++
    const outlet = port === undefined ? this.#main : this.outlets.get(port)
    if (batch.count === 0 || outlet === undefined) {
      finalizeBatch(batch, 'dropped')
      return undefined
    }
    this.events.sent(batch.count, batch.bytes, port)
    if (!this.#inside) return this.#pressure.push(outlet, batch)
    outlet.send(batch)
    return undefined
  }

  get takesBytes(): boolean {
    return this.#transform.takesBytes === true && this.#main.takesBytes
  }

  push(batch: Batch): void {
    const { count } = batch
    this.events.received(count, batch.bytes)
    const outer = this.#stopwatch.enter(this.meter)
    const emittedOutside = this.#emitted
    this.#emitted = 0
    this.#inside = true
    try {
      const later = this.#transform.transform(batch, this.#output)
      if (later !== undefined) this.#wait(later, batch)
    } catch (error) {
      // If events were emitted, the share was released with them.
      this.#failed(error, batch, this.#emitted === 0 ? 'dropped' : undefined)
    }
    this.#inside = false
    this.#emitted = emittedOutside
    this.#stopwatch.leave(outer)
  }

  #wait(later: Promise<void>, batch: Batch): void {
    const done = later
      .catch((error: unknown) => this.#failed(error, batch, 'errored'))
      .finally(() => this.#waiting.delete(done))
    this.#waiting.add(done)
    this.#pressure.add(done)
  }

  #failed(error: unknown, batch: Batch, status: EventStatus | undefined): void {
    this.events.error({
      type: 'conversion_failed',
      stage: 'processing',
      message: 'The transform failed; the batch is discarded.',
      fields: { error },
    })
    this.events.discarded(batch.count, false, 'The transform failed.')
    if (status !== undefined) finalizeBatch(batch, status)
  }

  /** Resolves when all accepted events are emitted. */
  async drained(): Promise<void> {
    while (this.#waiting.size > 0) await Promise.all(this.#waiting)
  }

  /** Aborts the remaining work. */
  close(): void {
    this.#transform.close?.()
    this.limit.close()
  }
}

export async function buildTransform(config: TransformConfig, context: TopologyContext): Promise<TransformNode> {
  const { id, declaration } = config
  const own = parts(context, id, 'transform', declaration.type)
  const transform = await built('transform', id, () =>
    declaration.build(config.options, {
      id,
      type: declaration.type,
      kind: 'transform',
      // The rules for programs come from the component's pipeline, not from the agent.
      globals: { ...context.globals, programs: config.programs },
      logger: own.logger,
      events: own.events,
      metrics: context.metrics,
      programLog: context.bundle?.programLog(id),
    }),
  )
  return new TransformNode(config, transform, context, own)
}

/** A sink behind its buffer. */
export class SinkNode implements Consumer {
  readonly kind = 'sink'
  config: SinkConfig
  readonly sink: Sink
  readonly buffer: SinkBuffer
  readonly driver: SinkDriver
  readonly meter: UtilizationMeter
  readonly events: CountedEvents
  readonly logger: Logger
  readonly limit: RepetitionLimit
  /** Aborts its work for a buffer; shared by all successive sinks of that buffer. */
  readonly abandon: AbortController
  readonly succession: Succession
  /** The writers that wait for space in the buffer. */
  readonly wait: SinkWait
  readonly #pressure: Pressure
  readonly #labels: Labels

  constructor(
    config: SinkConfig,
    sink: Sink,
    kept: { readonly buffer: SinkBuffer; readonly abandon: AbortController; readonly succession: Succession },
    context: TopologyContext,
    own: Parts,
  ) {
    const { buffer } = kept
    this.config = config
    this.sink = sink
    this.buffer = buffer
    this.abandon = kept.abandon
    this.succession = kept.succession
    this.events = own.events
    this.logger = own.logger
    this.limit = own.limit
    this.#labels = own.labels
    this.#pressure = context.pressure
    this.meter = new UtilizationMeter(context.bundle?.account?.(config.id))
    this.driver = new SinkDriver(sink, buffer, own.events, this.meter, context.stopwatch)
    this.wait = new SinkWait((isWaiting) => {
      if (isWaiting)
        own.logger.warn({ inputs: this.config.inputs }, 'The buffer is full; the inputs wait for this sink.')
      else own.logger.info('The buffer accepts events again.')
    })
  }

  /** Exposes metrics that only the active component may expose. */
  show(metrics: Metrics): void {
    metrics.computed('utilization', this.#labels, () => this.meter.average)
    showBuffer(this.buffer, metrics, this.#labels)
    metrics.computed('sink_wait_seconds', this.#labels, () => this.wait.seconds)
  }

  get takesBytes(): boolean {
    return this.sink.takesBytes === true
  }

  push(batch: Batch): void {
    // A source may emit both event types, although the sink accepts only one.
    if (!this.config.declaration.accepts.includes(batch.type)) {
      this.events.discarded(batch.count, true, 'The sink accepts no events of this type.')
      finalizeBatch(batch, 'dropped')
      return
    }
    const wait = this.buffer.write(batch)
    if (wait === undefined) return
    this.#pressure.add(wait)
    this.wait.add(wait)
  }
}

/** @param kept the replaced sink, whose buffer is passed on with its content */
export async function buildSink(config: SinkConfig, context: TopologyContext, kept?: SinkNode): Promise<SinkNode> {
  const { id, declaration } = config
  const abandon = kept?.abandon ?? new AbortController()
  const abandoning = AbortSignal.any([context.abandoning, abandon.signal])
  const own = parts(context, id, 'sink', declaration.type)
  const succession = new Succession()
  const letters = context.bundle?.deadLetter === undefined ? undefined : new DeadLetters(id, declaration.type, context)
  const sink = await built('sink', id, () =>
    declaration.build(config.options, {
      id,
      type: declaration.type,
      kind: 'sink',
      globals: context.globals,
      logger: own.logger,
      events: config.envelope.buffer.type === 'disk' ? keepingEvents(own.events, abandoning) : own.events,
      proxy: config.proxy,
      abandoning,
      rejected: letters === undefined ? undefined : (...rejected) => letters.take(...rejected),
      succession,
    }),
  )
  let buffer = kept?.buffer
  try {
    buffer ??= await built('sink', id, () => newBuffer(config, context, own, abandoning))
  } catch (error) {
    await sink.close()
    throw error
  }
  return new SinkNode(config, sink, { buffer, abandon, succession }, context, own)
}

/**
 * The event counts of a sink with a durable buffer: events given up because the agent must stop are kept for the next start, not lost.
 */
function keepingEvents(events: ComponentEvents, abandoning: AbortSignal): ComponentEvents {
  return {
    receivedBytes: (bytes, tags) => events.receivedBytes(bytes, tags),
    received: (count, bytes, origin) => events.received(count, bytes, origin),
    sent: (count, bytes, output) => events.sent(count, bytes, output),
    sentBytes: (bytes, tags) => events.sentBytes(bytes, tags),
    error: (report) => events.error(report),
    discarded(count, intentional, reason) {
      if (intentional || !abandoning.aborted) events.discarded(count, intentional, reason)
    },
    count: (name, by, tags) => events.count(name, by, tags),
    gauge: (name, value, tags) => events.gauge(name, value, tags),
    observe: (name, value, tags) => events.observe(name, value, tags),
  }
}

async function newBuffer(
  config: SinkConfig,
  context: TopologyContext,
  own: Parts,
  abandoning: AbortSignal,
): Promise<SinkBuffer> {
  const { type, max_events: maxEvents = defaultMaxEvents, when_full: whenFull } = config.envelope.buffer
  const onDrop = (events: number) => {
    const fields = { count: events, intentional: true, buffer_id: config.id }
    own.limit.log(own.logger, 'warn', fields, 'The buffer is full; new events are dropped.')
    // Also counted in the total of the component's discarded events.
    own.events.discarded(events, true, 'The buffer is full.')
  }
  const { metrics, globals } = context
  if (type === 'memory') return new MemoryBuffer({ maxEvents, whenFull, onDrop }, metrics, own.labels)
  // Loaded on demand, because most agents have no disk buffer.
  const { DiskBuffer } = await import('../buffers/disk.ts')
  return DiskBuffer.open(diskLimits(config), {
    folder: bufferFolder(globals.dataDir, config.id),
    logger: own.logger,
    limit: own.limit,
    metrics,
    component: own.labels,
    abandoning,
    onDrop,
    linesAsObjects: globals.remap.byte_lane === false,
  })
}

/** Limits of a disk buffer; only some sinks may omit `max_size`. */
export function diskLimits(config: SinkConfig): DiskBufferOptions {
  const { max_size: maxSize, when_full: whenFull } = config.envelope.buffer
  return { maxSize: maxSize ?? minDiskBuffer, whenFull }
}
