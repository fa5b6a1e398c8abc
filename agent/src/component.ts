// The contract of a component: its declaration (type, options, how to build it) and the contracts of the built thing. Only the
// declaration describes a component; validation, JSON Schema, reference pages and completion are derived from it.

import type { Tables } from './enrichment/tables.ts'
import type { Batch, EventType } from './event/batch.ts'
import type { ProgramRules } from './remap/rules.ts'
import type { BufferOptions, HealthcheckOption, ProxyOptions } from './schema/groups.ts'
import { acknowledgements, buffer, healthcheck, proxy } from './schema/groups.ts'
import type { Options, Parsed } from './schema/options.ts'
import type { ProgramDiagnostic } from './schema/problems.ts'
import type { ComponentEvents } from './telemetry/component-events.ts'
import type { Logger } from './telemetry/logger.ts'
import type { Metrics } from './telemetry/metrics.ts'

export type ComponentKind = 'source' | 'transform' | 'sink'

/** Global settings that components refer to. */
export interface Globals {
  /** Directory for state that survives a restart; a component uses the sub-folder of its own id. */
  readonly dataDir: string
  /** TZ database name; `local` has been resolved. */
  readonly timezone: string
  readonly logSchema: {
    readonly messageKey: string
    readonly timestampKey: string
    readonly hostKey: string
    readonly sourceTypeKey: string
    readonly metadataKey: string
  }
  /** Proxies of the global option and the environment, merged. */
  readonly proxy: ProxyOptions
  /** The rights of remap programs. */
  readonly remap?: { readonly network: boolean; readonly byte_lane?: boolean }
  /** The limits and reach of programs, by their owner: unlimited if not given. */
  readonly programs?: ProgramRules | undefined
  /** Enrichment tables for programs; absent where there are none, and where a configuration is only checked. */
  readonly tables?: Tables | undefined
  /** Names of the enrichment tables of the configuration. */
  readonly tableNames?: readonly string[]
}

interface Context {
  /** The user's name for the component. */
  readonly id: string
  readonly type: string
  readonly kind: ComponentKind
  readonly globals: Globals
  /** Carries `component_id`, `component_kind`, `component_type`. */
  readonly logger: Logger
  /** Counters of the component; the only way to count events, errors and discards. */
  readonly events: ComponentEvents
}

/** So many lines and bytes a second, and what becomes of more: it is dropped and counted, or waits at its origin. */
export interface RateLimitOptions {
  readonly lines?: number
  readonly bytes?: number
  readonly onLimit: 'drop' | 'lag'
}

/** A limit that all readers with the same key on an agent share: what exceeds it waits at its origin. */
export interface SharedLimit {
  readonly key: string
  /** A second. */
  readonly bytes: number
}

/** The pods that a source of a rendered bundle may read, whatever its options say. */
export interface Subscription {
  /** Where its positions are kept: uid of the pipeline and name of the source. */
  readonly cursor: string
  /** Names of namespaces; all if not given. */
  readonly namespaces?: readonly string[]
  /** Label selectors. */
  readonly namespaceSelector?: string
  readonly podSelector?: string
  /** Field selector of pods. */
  readonly fieldSelector?: string
  /** Only pods with the label that asks for it. */
  readonly optIn?: boolean
  readonly includeContainers?: readonly string[]
  readonly excludeContainers?: readonly string[]
  readonly limits?: {
    readonly perContainer?: RateLimitOptions
    readonly pipeline?: RateLimitOptions
    readonly shared?: readonly SharedLimit[]
  }
}

/** The reason of `stopping` where the agent continues, without the source or with another in its place. */
export const reconfigured = Symbol('reconfigured')

export interface SourceContext extends Context {
  readonly kind: 'source'
  readonly output: SourceOutput
  /** Aborts when the source must stop: it takes no more from its origin, sends the events that it has, and `run` resolves. */
  readonly stopping: AbortSignal
  /** True if a connected sink wants the origin to be acknowledged only after delivery. */
  readonly acknowledgements: boolean
  /** Proxies of this component, merged with the global ones and the environment. */
  readonly proxy: ProxyOptions
  /** The agent's own metrics, for the source that turns them into events; absent where nothing is counted. */
  readonly metrics?: Metrics
  /** Whether it takes the place of a source of its id that has just ended in this process, as in a reload. */
  readonly replaces?: boolean
  /** Where one agent of several runs it: when its predecessor was last known to run, by that one's clock; undefined if there was none. */
  readonly precededUntil?: (() => number | undefined) | undefined
  /** Beside an application: the folder that files must be in, whatever links lead elsewhere. */
  readonly confinedTo?: string | undefined
  /** In a bundle: what the source may read. */
  readonly subscription?: Subscription | undefined
  /** In a bundle: what its sources share, such as one watch of the pods. The source that can use it knows its class. */
  readonly hub?: object | undefined
  /** In a bundle: shares the thread with the sources of other pipelines. */
  readonly turns?: Turns | undefined
}

/** A source that always has more work awaits this before it continues. */
export interface Turns {
  /** Resolves when it may work for about a millisecond. */
  next(): Promise<void>
  /** Does work whose time counts as the source's. Synchronous. */
  spend<T>(work: () => T): T
}

export interface SourceOutput {
  /** Whether events that are lines still (`ByteBatch`) are taken as such by all who read them; it may change between two batches. */
  readonly takesBytes?: boolean
  /**
   * Sends a batch on; counts it as received by the source and as sent. A returned promise resolves when the next
   * batch may be sent (back-pressure). The batch then belongs to others: the caller must not touch it again.
   */
  send(batch: Batch, origin?: OriginTags): Promise<void> | undefined
}

/** Where events came from: the optional tags of `component_received_*`. */
export interface OriginTags {
  readonly container_name?: string
  readonly file?: string
  readonly mode?: string
  readonly peer_addr?: string
  readonly peer_path?: string
  readonly pod_name?: string
  readonly pod_namespace?: string
  readonly uri?: string
}

export interface Source {
  /** Runs until the origin ends or `stopping` aborts. Rejects only for what must end the agent. */
  run(): Promise<void>
  /**
   * Resolves when the source has acknowledged or returned all sent batches at the origin, and has closed it. Called when `run` has
   * resolved, while sinks deliver their pending events or afterwards; unanswered batches are awaited until the agent ends.
   */
  settle?(): Promise<void>
  /** Throws a PenstockError if the origin cannot be used, for example because credentials are missing. */
  healthcheck?(signal: AbortSignal): Promise<void>
  /** Sources of log files: seconds since the oldest line was written that waits to be read; 0 where none does. */
  lagSeconds?(): number
  /** Sources of pods' logs: where they are in the files of a pod, by its uid. */
  positions?(podUid: string): readonly LogPosition[]
}

/** Where a source is in a log file of a container. */
export interface LogPosition {
  readonly container: string
  readonly file: string
  /** Bytes: of the file, up to where it has been read, and up to where everything has been answered for. */
  readonly size: number
  readonly read: number
  readonly delivered: number
  readonly lagSeconds: number
  /** Lines left out because of a limit, since the file was opened. */
  readonly dropped: number
  /**
   * The file was compressed before the source began with the container, so it is not read: `size` is that of the compressed file, and
   * `lines` absent while they are being counted.
   */
  readonly compressed?: { readonly lines?: number }
}

/** Takes a line that a program writes with `log`. */
export type ProgramLog = (level: 'trace' | 'debug' | 'info' | 'warn' | 'error', text: string) => void

export interface TransformContext extends Context {
  readonly kind: 'transform'
  /** Where programs write; the agent's own log if not given. */
  readonly programLog?: ProgramLog | undefined
  /** The agent's own metrics, for programs that look them up; absent where nothing is counted. */
  readonly metrics?: Metrics
}

export interface TransformOutput {
  /**
   * Emits a batch on the default output, or on a named one. A returned promise resolves when the next batch may be
   * sent; it returns nothing while `transform` is running, because the sender of that batch waits instead.
   */
  send(batch: Batch, port?: string): Promise<void> | undefined
}

export interface Transform {
  /**
   * Takes a batch and emits what becomes of it, synchronously. Takes over the batch's share of its finalizer: passes it on with
   * the batch it emits, retains one for each further batch, and releases it as `dropped` when nothing is emitted.
   *
   * A transform that must wait, such as a program that asks the network, returns a promise instead: it emits later, in the order
   * of the batches, and the promise resolves when the next batch may come. The promise rejects only if nothing was emitted.
   */
  transform(batch: Batch, output: TransformOutput): Promise<void> | undefined
  /** Whether events that are lines still (`ByteBatch`) pass it as such. */
  readonly takesBytes?: boolean
  /** Ends what it still works on: promises that it has given reject. */
  close?(): void
}

export interface SinkContext extends Context {
  readonly kind: 'sink'
  /** Proxies of this component, merged with the global ones and the environment. */
  readonly proxy: ProxyOptions
  /** Aborts when the time for a graceful stop is over: waits and requests end at once. */
  readonly abandoning: AbortSignal
  /** In a bundle: keeps what the destination rejects for good. */
  readonly rejected?: TakeRejected | undefined
  /** Where it may be replaced while it runs. */
  readonly succession?: Succession | undefined
}

/**
 * Which sink replaces another. A sink whose options change, for example when a Secret is rotated, is built again. Requests of the old
 * one that wait for another attempt then use the credentials of the new one. The sender of a sink registers itself.
 */
export class Succession {
  readonly senders: object[] = []
  #next: Succession | undefined

  succeededBy(next: Succession): void {
    this.#next = next
  }

  /** That of the sink in force; undefined if it is this one. */
  get latest(): Succession | undefined {
    let latest = this.#next
    for (let next = latest; next !== undefined; next = next.#next) latest = next
    return latest
  }
}

/**
 * Takes events that a destination has rejected, or some of them: `written` gives what the sink had written for the first so many. They
 * have been counted, and are answered for, by the sink.
 */
export type TakeRejected = (events: number, written: (events: number) => readonly string[], message: string) => void

export interface Sink {
  /**
   * Takes a batch and with it the duty to release its share of the finalizer, one event's outcome at a time or all at once.
   * A returned promise resolves when the sink can take more; until then the sink's buffer fills.
   */
  write(batch: Batch): Promise<void> | undefined
  /** Whether it writes events that are lines still (`ByteBatch`) without objects. */
  readonly takesBytes?: boolean
  /** Sends what it still holds and resolves when the destination has answered for every event. */
  close(): Promise<void>
  /** Throws a PenstockError with the reason if the destination is not usable. */
  healthcheck?(signal: AbortSignal): Promise<void>
}

/** A problem with options that only the component can see. */
export interface OptionProblem {
  /** Path of the option below the component, such as `batch.max_bytes`; empty for the component as a whole. */
  readonly path: string
  readonly message: string
  /** The remedy. */
  readonly help?: string
  /** `warning` does not keep the agent from starting. */
  readonly severity?: 'error' | 'warning'
  /** Place inside a text option, such as a program: line and column, from 1, and the rendered diagnostic. */
  readonly position?: { readonly line: number; readonly column: number }
  readonly rendered?: string
  readonly diagnostic?: ProgramDiagnostic
}

interface Declaration<O extends Options> {
  /** The id that users write as `type`. */
  readonly type: string
  /** First line of the reference page. */
  readonly summary: string
  /** Further text of the reference page, Markdown. */
  readonly description?: string
  /** Products that it works with, by the names that users search for. */
  readonly products?: readonly string[]
  /** Names that users know from elsewhere; accepted and reported once. */
  readonly aliases?: readonly string[]
  /** By alias: how the events of this component differ from those of the component that has this name elsewhere. One sentence. */
  readonly aliasNotes?: Readonly<Record<string, string>>
  /** The replacement of this type. */
  readonly deprecated?: string
  readonly options: O
  /**
   * The agent itself, if the component reaches it beyond its options: its standard streams, metrics or logs. The options show files and
   * addresses.
   */
  readonly reaches?: 'agent'
  /** Resources that only one component may have: `tcp 0.0.0.0:80`, `dir /var/x`. Two that claim the same are refused. */
  resources?(options: Parsed<O>): readonly string[]
  /**
   * Why log events have to be objects for it, as a part of a sentence; undefined where they may stay lines. Left out: always. The
   * component that is built says the same by `takesBytes`.
   */
  objectsBecause?(options: Parsed<O>, globals: Globals): string | undefined
  /** Checks what a schema cannot say. Pure: opens nothing. */
  check?(options: Parsed<O>, globals: Globals): readonly OptionProblem[]
}

export interface SourceDeclaration<O extends Options = Options> extends Declaration<O> {
  readonly kind: 'source'
  readonly outputs: readonly EventType[]
  /** The event types that it emits with these options, where that may be fewer. */
  emits?(options: Parsed<O>): readonly EventType[]
  /** Whether the origin can be acknowledged after delivery. */
  readonly acknowledges: boolean
  /**
   * Whether several agents that run it would emit the same events several times: of the replicas of one Agent, one runs it.
   * `build` is then called for each term in which the agent is the one, and opens nothing before `run`.
   */
  readonly singleton: boolean
  /** The agents that run it in a cluster: those of nodes, or aggregators; any if not given. */
  readonly runsOn?: 'node' | 'aggregator'
  build(options: Parsed<O>, context: SourceContext): Source | Promise<Source>
}

export interface TransformDeclaration<O extends Options = Options> extends Declaration<O> {
  readonly kind: 'transform'
  readonly accepts: readonly EventType[]
  /** The event types that it emits, if they differ from those that it takes. */
  readonly outputs?: readonly EventType[]
  /** Names of further outputs, reached as `<id>.<name>`. */
  ports?(options: Parsed<O>): readonly string[]
  build(options: Parsed<O>, context: TransformContext): Transform | Promise<Transform>
}

export interface SinkDeclaration<O extends Options = Options> extends Declaration<O> {
  readonly kind: 'sink'
  readonly accepts: readonly EventType[]
  /** Whether `buffer.max_size` may be left out of a buffer on disk, which then has the smallest size. */
  readonly bufferSizeOptional?: boolean
  build(options: Parsed<O>, context: SinkContext): Sink | Promise<Sink>
}

export type AnyDeclaration = SourceDeclaration | TransformDeclaration | SinkDeclaration

/** Options of every sink besides its own, which the topology implements. `inputs` and `type` belong to the graph. */
export const sinkEnvelope = {
  acknowledgements: acknowledgements(),
  buffer: buffer(),
  healthcheck: healthcheck(),
  proxy: proxy(),
}

/** The parsed envelope of a sink. */
export interface SinkEnvelope {
  readonly acknowledgements: boolean | { readonly enabled?: boolean | undefined } | undefined
  readonly buffer: BufferOptions
  readonly healthcheck: HealthcheckOption
  readonly proxy: ProxyOptions
}

export function defineSource<O extends Options>(
  declaration: Omit<SourceDeclaration<O>, 'kind' | 'acknowledges' | 'singleton'> & {
    acknowledges?: boolean
    singleton?: boolean
  },
): SourceDeclaration<O> {
  return { acknowledges: false, singleton: false, ...declaration, kind: 'source' }
}

export function defineTransform<O extends Options>(
  declaration: Omit<TransformDeclaration<O>, 'kind'>,
): TransformDeclaration<O> {
  return { ...declaration, kind: 'transform' }
}

export function defineSink<O extends Options>(declaration: Omit<SinkDeclaration<O>, 'kind'>): SinkDeclaration<O> {
  return { ...declaration, kind: 'sink' }
}

/** A declaration whose option types are forgotten, for lists of components. Sound because `build` only sees parsed options. */
export function erased<D>(
  declaration: D,
): D extends { kind: 'source' }
  ? SourceDeclaration
  : D extends { kind: 'transform' }
    ? TransformDeclaration
    : SinkDeclaration {
  return declaration as never
}

/** The components that a configuration may use. */
export interface Registry {
  readonly all: readonly AnyDeclaration[]
  /** The component of a kind by its type id or one of its aliases. */
  find(kind: ComponentKind, type: string): AnyDeclaration | undefined
}

export function registryOf(all: readonly AnyDeclaration[]): Registry {
  const entries = all.flatMap((component) =>
    [component.type, ...(component.aliases ?? [])].map((name) => [`${component.kind} ${name}`, component] as const),
  )
  const byName: ReadonlyMap<string, AnyDeclaration> = new Map(entries)
  return { all, find: (kind, type) => byName.get(`${kind} ${type}`) }
}
