// The running topology: components, the connections between them, and the shutdown. Sinks start before sources; sources
// stop before sinks. A failure affects only its own component, unless a source reports that the agent cannot continue.

import type { SinkBuffer } from '../buffers/buffer.ts'
import { reconfigured } from '../component.ts'
import type { Config } from '../config/config.ts'
import { errorText, PenstockError } from '../errors.ts'
import { finalizeBatch } from '../event/batch.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { within } from '../timing/wait.ts'
import {
  type BundleParts,
  buildSink,
  buildSource,
  buildTransform,
  type SinkNode,
  type SourceNode,
  showSource,
  type TopologyContext,
  type TransformNode,
  topologyContext,
} from './build.ts'
import type { Consumer, Outlet } from './fanout.ts'
import { type CheckedHealth, checkHealth, firstUnhealthy } from './healthchecks.ts'
import { Shutdown } from './shutdown.ts'

const utilizationTickMs = 5000
/** Extra time after the limit of a graceful stop for components to react to the abort. */
const abandonMs = 1000
/** How long to wait for a destination's answer during a stop, if a durable buffer holds the sent events. */
const answerMs = 5000
/** How long a disk buffer may take to write its pending events. */
const closeMs = 5000

export interface TopologyOptions {
  readonly logger: Logger
  readonly metrics: Metrics
  /** Whether the start fails if a health check fails. */
  readonly requireHealthy?: boolean
  readonly logRateLimitMs?: number
  /** State shared by the components of a bundle. */
  readonly bundle?: BundleParts
  /** Handles the failure of a source, which otherwise ends the topology. */
  readonly sourceFailed?: (id: string, error: unknown) => void
  /** How long a removed sink may continue to deliver its events; unlimited if not given. */
  readonly drainMs?: number
}

/** How a topology ended without a stop. */
export interface Ending {
  /** The error of a source; absent if all sources ended normally. */
  readonly failure?: unknown
}

/** Access to the components of a topology while they are replaced; only `Topology.edit` provides it. */
export interface TopologyEditor {
  readonly sources: Map<string, SourceNode>
  readonly transforms: Map<string, TransformNode>
  readonly sinks: Map<string, SinkNode>
  /** Activates a configuration: unchanged components take their inputs from it, and all outputs are reconnected. */
  adopt(config: Config): void
}

export class Topology {
  readonly context: TopologyContext
  #config: Config
  readonly #sources = new Map<string, SourceNode>()
  readonly #transforms = new Map<string, TransformNode>()
  readonly #sinks = new Map<string, SinkNode>()
  readonly sources: ReadonlyMap<string, SourceNode> = this.#sources
  readonly transforms: ReadonlyMap<string, TransformNode> = this.#transforms
  readonly sinks: ReadonlyMap<string, SinkNode> = this.#sinks
  readonly requireHealthy: boolean
  /** Resolves when all sources have ended, or one has failed. */
  readonly ended: Promise<Ending>
  readonly #end: (ending: Ending) => void
  #endedByItself = false
  readonly #logger: Logger
  readonly #sourceFailed: ((id: string, error: unknown) => void) | undefined
  readonly #abandon: AbortController
  readonly #drainMs: number | undefined
  /** End promises of the running sources. */
  readonly #running = new Map<SourceNode, Promise<void>>()
  /** Removed sinks that still deliver their events. */
  readonly #retiring = new Map<SinkNode, Promise<void>>()
  /** Ended sources that still acknowledge their events at the origin. */
  readonly #settling = new Map<SourceNode, Promise<void>>()
  /** Removed transforms that still emit accepted events. */
  readonly #leaving = new Set<TransformNode>()
  readonly #checks = new Set<Promise<unknown>>()
  readonly #stopping = new AbortController()
  readonly #ticker: NodeJS.Timeout
  #tickedAt = performance.now()
  #changed = new Set<() => void>()
  /** True while sources are deliberately replaced. */
  #isEdited = false

  constructor(config: Config, options: TopologyOptions) {
    this.#config = config
    this.#logger = options.logger
    this.#abandon = new AbortController()
    this.#drainMs = options.drainMs
    this.requireHealthy = options.requireHealthy ?? config.globals.healthchecks.requireHealthy
    this.context = topologyContext(
      config.globals,
      options.logger,
      options.metrics,
      this.#abandon.signal,
      options.logRateLimitMs,
      options.bundle,
    )
    this.#sourceFailed = options.sourceFailed
    const { promise, resolve } = Promise.withResolvers<Ending>()
    this.ended = promise
    this.#end = resolve
    this.#ticker = setInterval(() => this.#tick(), utilizationTickMs).unref()
  }

  /** The active configuration. */
  get config(): Config {
    return this.#config
  }

  /** Builds everything, checks health if required, and starts. Throws a PenstockError with every reason. */
  static async start(config: Config, options: TopologyOptions): Promise<Topology> {
    const topology = new Topology(config, options)
    try {
      await topology.build()
      if (topology.requireHealthy)
        await topology.requireHealth([...topology.sinks.values(), ...topology.sources.values()])
    } catch (error) {
      await topology.stop(0)
      throw error
    }
    if (!topology.requireHealthy) topology.checkInBackground([...topology.sinks.values(), ...topology.sources.values()])
    topology.wire()
    for (const sink of topology.sinks.values()) sink.driver.start()
    for (const source of topology.sources.values()) topology.runSource(source)
    return topology
  }

  /** Builds every component without starting it; reports all failures together. */
  async build(): Promise<void> {
    const { config, context } = this
    const failures: unknown[] = []
    const each = async <C, N>(
      configs: ReadonlyMap<string, C>,
      nodes: Map<string, N>,
      build: (config: C) => Promise<N>,
    ) => {
      for (const [id, component] of configs) {
        try {
          nodes.set(id, await build(component))
        } catch (error) {
          failures.push(error)
        }
      }
    }
    await each(config.sinks, this.#sinks, (sink) => buildSink(sink, context))
    await each(config.transforms, this.#transforms, (transform) => buildTransform(transform, context))
    await each(config.sources, this.#sources, (source) => buildSource(source, context))
    if (failures.length > 0) throw joined(failures)
  }

  /** Lets `change` replace components. Meanwhile the topology does not end, even if no source is running. */
  async edit<T>(change: (editor: TopologyEditor) => Promise<T>): Promise<T> {
    this.#isEdited = true
    try {
      return await change({
        sources: this.#sources,
        transforms: this.#transforms,
        sinks: this.#sinks,
        adopt: (config) => this.#adopt(config),
      })
    } finally {
      this.#isEdited = false
    }
  }

  #adopt(config: Config): void {
    for (const [id, node] of this.transforms) node.config = config.transforms.get(id) ?? node.config
    for (const [id, node] of this.sinks) node.config = config.sinks.get(id) ?? node.config
    this.#config = config
    this.wire()
  }

  /** Connects every output with its readers in one step, as the configuration says. */
  wire(): void {
    const readers = new Map<string, Consumer[]>()
    for (const node of [...this.transforms.values(), ...this.sinks.values()]) {
      for (const input of node.config.inputs) {
        const consumers = readers.get(input)
        if (consumers === undefined) readers.set(input, [node])
        else consumers.push(node)
      }
    }
    for (const node of this.sources.values()) showSource(node, this.context.metrics)
    for (const node of [...this.transforms.values(), ...this.sinks.values()]) node.show(this.context.metrics)
    for (const outlet of this.outlets()) outlet.consumers = readers.get(outlet.id) ?? []
    // A removed component emits to the readers of its successor, or to its previous ones.
    for (const node of this.#leaving) {
      for (const outlet of node.outlets.values()) {
        outlet.consumers = readers.get(outlet.id) ?? outlet.consumers.flatMap((reader) => this.#successor(reader))
      }
    }
    for (const listener of this.#changed) listener()
  }

  #successor(reader: Consumer): Consumer[] {
    const { id } = (reader as TransformNode | SinkNode).config
    const node = (reader as TransformNode | SinkNode).kind === 'sink' ? this.sinks.get(id) : this.transforms.get(id)
    return node === undefined ? [] : [node]
  }

  *outlets(): Iterable<Outlet> {
    for (const source of this.sources.values()) yield source.outlet
    for (const transform of this.transforms.values()) yield* transform.outlets.values()
  }

  /** Id of the component with the longest uninterrupted use of the thread since the last call, if that was long. */
  takeCulprit(): string | undefined {
    const meter = this.context.stopwatch.takeLongest()
    if (meter === undefined) return undefined
    const nodes = [...this.sources.values(), ...this.transforms.values(), ...this.sinks.values()]
    return nodes.find((node) => node.meter === meter)?.config.id
  }

  /** Calls the listener after every change of the connections. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#changed.add(listener)
    return () => {
      this.#changed.delete(listener)
    }
  }

  runSource(node: SourceNode): void {
    const done = Promise.try(() => node.source.run()).then(
      () => node.logger.debug('The source has ended.'),
      (error: unknown) => {
        if (this.#sourceFailed !== undefined) {
          node.logger.error({ error }, 'The source failed.')
          this.#sourceFailed(node.config.id, error)
          return
        }
        node.logger.error({ error }, 'The source failed; the agent stops.')
        this.#end({ failure: error })
      },
    )
    this.#running.set(
      node,
      done.then(() => {
        this.#running.delete(node)
        this.#settle(node)
        this.endIfDone()
      }),
    )
  }

  #settle(node: SourceNode): void {
    if (node.source.settle === undefined) return
    const done = Promise.try(() => node.source.settle?.()).then(
      () => {},
      (error: unknown) =>
        node.logger.error({ error }, 'The source failed while it acknowledged its last events at the origin.'),
    )
    this.#settling.set(
      node,
      done.then(() => {
        this.#settling.delete(node)
      }),
    )
  }

  get stopping(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Ends the topology if every source has ended normally. */
  endIfDone(): void {
    if (this.#running.size === 0 && this.sources.size > 0 && !this.#isEdited && !this.stopping) {
      this.#endedByItself = true
      this.#end({})
    }
  }

  /** Ends the topology because it cannot continue. */
  fail(error: unknown): void {
    this.#end({ failure: error })
  }

  /** Asks a source to stop and waits up to the limit; true if it has stopped. */
  async stopSource(node: SourceNode, limitMs: number): Promise<boolean> {
    node.stopping.abort(reconfigured)
    const done = this.#running.get(node)
    if (done === undefined) return true
    const { promise: late, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), limitMs)
    const stopped = await Promise.race([done.then(() => true), late])
    clearTimeout(timer)
    this.#running.delete(node)
    node.limit.close()
    return stopped
  }

  /** Discards all further output of the source, without acknowledgement. */
  cutOff(node: SourceNode): void {
    node.logger.error('The source did not stop in time; it is disconnected.')
    node.outlet.consumers = [{ push: (batch) => finalizeBatch(batch, 'errored') }]
  }

  /** Lets a removed sink deliver its events, and then closes it; only a stop waits for it. */
  retire(node: SinkNode): void {
    const limit = this.#drainMs === undefined ? undefined : setTimeout(() => this.#giveUp(node), this.#drainMs).unref()
    const done = this.#finish(node).then(async () => {
      clearTimeout(limit)
      this.#retiring.delete(node)
      if (node.driver.ownsBuffer) await this.#removeBuffer(node)
      if (!this.sinks.has(node.config.id)) this.context.metrics.forget(node.config.id)
    })
    this.#retiring.set(node, done)
  }

  /** Ends the deliveries of a removed sink. Events on disk stay there, because the sink may return. */
  #giveUp(node: SinkNode): void {
    if (!node.driver.ownsBuffer) return
    const { buffer } = node
    node.logger.warn(
      { events: buffer.events, drain_seconds: (this.#drainMs ?? 0) / 1000 },
      buffer.durable
        ? 'A removed sink has not delivered all events in time; the rest stays in its buffer.'
        : 'A removed sink has not delivered all events in time; the rest is discarded.',
    )
    if (!buffer.durable)
      node.events.discarded(buffer.events, false, 'The sink was removed, and its time limit for draining is over.')
    node.driver.keep()
    node.abandon.abort(new Error('The sink was removed, and its time limit for draining is over.'))
  }

  /** The most recently removed sink with this id that still delivers. */
  retiringSink(id: string): SinkNode | undefined {
    return [...this.#retiring.keys()].findLast((node) => node.config.id === id)
  }

  /** Resolves when a removed sink has closed, or its time limit is over. */
  async retired(node: SinkNode): Promise<void> {
    await within(this.#retiring.get(node) ?? Promise.resolve(), closeMs)
  }

  /** Whether a running or removed sink uses this buffer. */
  holds(buffer: SinkBuffer): boolean {
    const nodes = [...this.sinks.values(), ...this.#retiring.keys()]
    return nodes.some((node) => node.buffer === buffer && node.driver.ownsBuffer)
  }

  async #removeBuffer(node: SinkNode): Promise<void> {
    try {
      await node.buffer.removeIfEmpty?.()
    } catch (error) {
      node.logger.warn({ error }, 'Could not remove the files of an unused buffer.')
    }
  }

  /** Lets a removed transform emit its pending events; called before the connections change. */
  leave(node: TransformNode): void {
    this.#leaving.add(node)
    void node.drained().then(() => {
      this.#leaving.delete(node)
      node.close()
    })
  }

  /**
   * Waits until all transforms have emitted their accepted events. Transforms later in a chain may receive more meanwhile.
   */
  async #drain(): Promise<void> {
    const all = new Set([...this.transforms.values(), ...this.#leaving])
    for (let pass = 0; pass < all.size; pass++) await Promise.all([...all].map((node) => node.drained()))
  }

  async #finish(node: SinkNode): Promise<void> {
    try {
      await node.driver.finish()
    } catch (error) {
      node.events.error({
        type: 'writer_failed',
        stage: 'sending',
        message: 'The sink failed while it was closing.',
        fields: { error },
      })
    }
    node.limit.close()
  }

  checkInBackground(nodes: readonly (SinkNode | SourceNode)[]): void {
    const check = this.check(nodes).finally(() => this.#checks.delete(check))
    this.#checks.add(check)
  }

  /** Checks health now; never rejects. */
  check(nodes: readonly (SinkNode | SourceNode)[]): Promise<CheckedHealth[]> {
    return checkHealth(nodes, this.config.globals.healthchecks.enabled, this.#stopping.signal)
  }

  async requireHealth(nodes: readonly (SinkNode | SourceNode)[]): Promise<void> {
    const { enabled } = this.config.globals.healthchecks
    const unhealthy = await firstUnhealthy(nodes, enabled, this.#stopping.signal)
    if (unhealthy.length === 0) return
    const reasons = unhealthy.map(({ id, error }) => `${id}: ${errorText(error)}`).join('; ')
    throw new PenstockError('PEN_HEALTHCHECK', `Sinks unhealthy. ${reasons}`, { cause: unhealthy[0]?.error })
  }

  #tick(): void {
    const now = performance.now()
    const elapsed = now - this.#tickedAt
    this.#tickedAt = now
    for (const node of this.sources.values()) node.meter.tick(now, elapsed)
    for (const node of this.transforms.values()) node.meter.tick(now, elapsed)
    for (const node of this.sinks.values()) node.meter.tick(now, elapsed)
  }

  /**
   * Stops gracefully: sources pass on their pending events, and sinks deliver theirs. After the limit, all remaining work is
   * abandoned. @param limitMs undefined: no limit @returns ids of the components that did not end in time
   */
  async stop(limitMs: number | undefined): Promise<readonly string[]> {
    this.#stopping.abort()
    clearInterval(this.#ticker)
    const shutdown = new Shutdown(limitMs, this.#logger)
    for (const node of this.sources.values()) node.stopping.abort()
    for (const node of this.sinks.values()) shutdown.pending.add(node.config.id)
    const all = this.#shutDown(shutdown)
    try {
      if (!(await shutdown.within(all, 1))) {
        this.#abandon.abort()
        await within(all, Math.min(abandonMs, (limitMs ?? 0) + 100))
      }
    } finally {
      shutdown.endProgress()
      for (const node of this.sources.values()) node.limit.close()
      this.#closeTransforms()
      // Buffers of sinks that did not end in time; all others are closed.
      const durable = this.#durableSinks()
      await Promise.all(durable.map((node) => within(this.#closeBuffer(node), closeMs)))
    }
    return [...shutdown.pending]
  }

  async #shutDown(shutdown: Shutdown): Promise<void> {
    await this.#stopSources(shutdown)
    await this.#drainTransforms(shutdown)
    await this.#finishSinks(shutdown)
    await this.#settleSources(shutdown)
  }

  async #stopSources(shutdown: Shutdown): Promise<void> {
    const ends = [...this.#running].map(([node, done]) => shutdown.hold(node.config.id, done))
    // A source that does not stop must not use up the time that the sinks need for delivery.
    if (!(await shutdown.within(Promise.all(ends), 1 / 2))) for (const node of this.#running.keys()) this.cutOff(node)
  }

  async #drainTransforms(shutdown: Shutdown): Promise<void> {
    if (!(await shutdown.within(this.#drain(), 1 / 4))) this.#closeTransforms()
  }

  async #finishSinks(shutdown: Shutdown): Promise<void> {
    // An agent that receives a stop signal leaves events on disk in their buffers. If all sources have ended, it delivers everything.
    if (!this.#endedByItself) {
      const kept = this.#durableSinks()
      for (const node of kept) node.driver.keep()
      shutdown.after(answerMs, () => giveUpAnswers(kept.filter(({ config }) => shutdown.pending.has(config.id))))
    }
    const sinks = [...this.sinks.values()].map((node) => shutdown.hold(node.config.id, this.#finish(node)))
    const retiring = [...this.#retiring].map(([node, done]) => shutdown.hold(node.config.id, done))
    await Promise.all([...sinks, ...retiring, ...this.#checks])
  }

  async #settleSources(shutdown: Shutdown): Promise<void> {
    await Promise.all([...this.#settling].map(([node, done]) => shutdown.hold(node.config.id, done)))
  }

  #durableSinks(): SinkNode[] {
    return [...this.sinks.values(), ...this.#retiring.keys()].filter((node) => node.buffer.durable)
  }

  async #closeBuffer(node: SinkNode): Promise<void> {
    try {
      await node.buffer.close()
    } catch (error) {
      node.logger.error({ error }, 'Could not close the buffer.')
    }
  }

  #closeTransforms(): void {
    for (const node of [...this.transforms.values(), ...this.#leaving]) node.close()
  }
}

/** Ends deliveries to destinations that do not answer; their events stay in the buffers. */
function giveUpAnswers(nodes: readonly SinkNode[]): void {
  for (const node of nodes) {
    const message = 'The destination has not answered; the events last sent to it stay in the buffer.'
    node.logger.info({ events: node.buffer.events }, message)
    node.abandon.abort(new Error(message))
  }
}

function joined(failures: readonly unknown[]): unknown {
  const [first] = failures
  if (failures.length === 1) return first
  const code = first instanceof PenstockError ? first.code : 'PEN_INTERNAL'
  return new PenstockError(code, failures.map(errorText).join('\n'), { cause: first })
}
