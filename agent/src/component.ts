// The contract of a component: its declaration (type, options, and the function that builds it), and the interfaces of the
// running source, transform or sink. Only the declaration describes a component. Validation, JSON Schema, reference pages and
// completion derive from it.

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
  /** Directory for state that survives a restart. Each component uses the sub-folder with its id. */
  readonly dataDir: string
  /** Name in the TZ database; `local` is already resolved. */
  readonly timezone: string
  readonly logSchema: {
    readonly messageKey: string
    readonly timestampKey: string
    readonly hostKey: string
    readonly sourceTypeKey: string
    readonly metadataKey: string
  }
  /** The merged proxies of the global option and the environment. */
  readonly proxy: ProxyOptions
  /** The rights of remap programs. */
  readonly remap?: { readonly network: boolean; readonly byte_lane?: boolean }
  /** The limits of programs and what they may access, which depend on their owner; by default unlimited. */
  readonly programs?: ProgramRules | undefined
  /** Enrichment tables for programs; undefined if there are none, or if the configuration is only checked. */
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
  /** Adds `component_id`, `component_kind` and `component_type` to each record. */
  readonly logger: Logger
  /** Counters of the component; the only way to count events, errors and discards. */
  readonly events: ComponentEvents
}

/** Maximum lines and bytes per second. Lines beyond the limit are dropped and counted, or wait at their origin. */
export interface RateLimitOptions {
  readonly lines?: number
  readonly bytes?: number
  readonly onLimit: 'drop' | 'lag'
}

/** A limit shared by all readers on an agent that have the same key. Lines beyond it wait at their origin. */
export interface SharedLimit {
  readonly key: string
  /** Per second. */
  readonly bytes: number
}

/** The pods that a source in a bundle may read, regardless of its options. */
export interface Subscription {
  /** The name under which its positions are stored: uid of the pipeline and name of the source. */
  readonly cursor: string
  /** Names of namespaces; by default all. */
  readonly namespaces?: readonly string[]
  /** Label selectors. */
  readonly namespaceSelector?: string
  readonly podSelector?: string
  /** Field selector of pods. */
  readonly fieldSelector?: string
  /** Whether to read only pods with the label that requests it. */
  readonly optIn?: boolean
  readonly includeContainers?: readonly string[]
  readonly excludeContainers?: readonly string[]
  readonly limits?: {
    readonly perContainer?: RateLimitOptions
    readonly pipeline?: RateLimitOptions
    readonly shared?: readonly SharedLimit[]
  }
}

/** The reason of `stopping` if the agent continues without the source, or with a replacement. */
export const reconfigured = Symbol('reconfigured')

export interface SourceContext extends Context {
  readonly kind: 'source'
  readonly output: SourceOutput
  /**
   * Aborts when the source must stop. The source then reads no more from its origin, sends its pending events, and `run`
   * resolves.
   */
  readonly stopping: AbortSignal
  /** True if a connected sink requires that the source acknowledges events at their origin only after delivery. */
  readonly acknowledgements: boolean
  /** Proxies of this component, merged with the global ones and the environment. */
  readonly proxy: ProxyOptions
  /** The agent's own metrics, for the source that turns them into events; undefined if nothing is counted. */
  readonly metrics?: Metrics
  /** Whether it replaces a source with the same id that has just ended in this process, as in a reload. */
  readonly replaces?: boolean
  /**
   * If only one of several agents runs the source: the last time at which its predecessor was known to run, by the predecessor's clock;
   * undefined if there was none.
   */
  readonly precededUntil?: (() => number | undefined) | undefined
  /** In a sidecar: the folder that must contain all files, even those reached through links. */
  readonly confinedTo?: string | undefined
  /** In a bundle: the pods that the source may read. */
  readonly subscription?: Subscription | undefined
  /**
   * In a bundle: the state that all its sources share, such as the watch of the pods. A source that uses it knows its
   * class.
   */
  readonly hub?: object | undefined
  /** In a bundle: shares the thread with the sources of other pipelines. */
  readonly turns?: Turns | undefined
}

/** A source that never runs out of work waits for its turn before it continues. */
export interface Turns {
  /** Resolves when it may work for about a millisecond. */
  next(): Promise<void>
  /** Runs synchronous work and charges its time to the source. */
  spend<T>(work: () => T): T
}

export interface SourceOutput {
  /** Whether all readers accept events that are still lines (`ByteBatch`). It may change between two batches. */
  readonly takesBytes?: boolean
  /**
   * Sends a batch, and counts it as received by the source and as sent. A returned promise resolves when the next batch
   * may be sent (back-pressure). The batch then belongs to its readers, so the caller must not use it again.
   */
  send(batch: Batch, origin?: OriginTags): Promise<void> | undefined
}

/** The origin of events: the optional tags of `component_received_*`. */
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
  /** Runs until the origin ends or `stopping` aborts. Rejects only for an error that must end the agent. */
  run(): Promise<void>
  /**
   * Resolves when the source has acknowledged or returned all sent batches at the origin, and has closed its connection. It is
   * called after `run` has resolved, during or after the final deliveries of the sinks. The source waits for unfinished batches
   * until the agent ends.
   */
  settle?(): Promise<void>
  /** Throws a PenstockError if the origin is not usable, for example because credentials are missing. */
  healthcheck?(signal: AbortSignal): Promise<void>
  /** For sources of log files: age of the oldest unread line in seconds; 0 if there is none. */
  lagSeconds?(): number
  /** For sources of pod logs: the source's positions in the files of a pod. */
  positions?(podUid: string): readonly LogPosition[]
}

/** The position of a source in a log file of a container. */
export interface LogPosition {
  readonly container: string
  readonly file: string
  /**
   * In bytes: the size of the file, the end of the part read, and the end of the part whose events all have a final
   * status.
   */
  readonly size: number
  readonly read: number
  readonly delivered: number
  readonly lagSeconds: number
  /** Lines dropped because of a limit since the file was opened. */
  readonly dropped: number
  /**
   * Set for a file that was compressed before the source found the container, which is not read. `size` is then the size of the
   * compressed file, and `lines` is undefined while the lines are being counted.
   */
  readonly compressed?: { readonly lines?: number }
}

/** Receives a line that a program writes with `log`. */
export type ProgramLog = (level: 'trace' | 'debug' | 'info' | 'warn' | 'error', text: string) => void

export interface TransformContext extends Context {
  readonly kind: 'transform'
  /** Receives the lines of `log`; by default, they go to the agent's own log. */
  readonly programLog?: ProgramLog | undefined
  /** The agent's own metrics, for programs that look them up; undefined if nothing is counted. */
  readonly metrics?: Metrics
}

export interface TransformOutput {
  /**
   * Emits a batch on the default output, or on the named output `port`. A returned promise resolves when the next batch
   * may be sent. While `transform` is running, this returns undefined, because the sender of the input batch waits
   * instead.
   */
  send(batch: Batch, port?: string): Promise<void> | undefined
}

export interface Transform {
  /**
   * Processes a batch synchronously and emits the results. It takes over the batch's share of the finalizer: it passes the share
   * on with the first emitted batch, retains another share for each further batch, and releases the share as `dropped` if it
   * emits nothing. A transform that must wait, for example for a response from the network, returns a promise. It then emits
   * later, in the order of the batches, and the promise resolves when it accepts the next batch. The promise rejects only if
   * nothing was emitted.
   */
  transform(batch: Batch, output: TransformOutput): Promise<void> | undefined
  /** Whether events that are still lines (`ByteBatch`) can pass through without becoming objects. */
  readonly takesBytes?: boolean
  /** Aborts the remaining work: pending promises of `transform` reject. */
  close?(): void
}

export interface SinkContext extends Context {
  readonly kind: 'sink'
  /** Proxies of this component, merged with the global ones and the environment. */
  readonly proxy: ProxyOptions
  /** Aborts when the time for a graceful stop is over. All waits and requests then end immediately. */
  readonly abandoning: AbortSignal
  /** In a bundle: receives the events that the destination rejects permanently. */
  readonly rejected?: TakeRejected | undefined
  /** Set if the sink may be replaced while it runs. */
  readonly succession?: Succession | undefined
}

/**
 * Links a sink to its replacement. If the options of a sink change, for example because a Secret is rotated, the agent builds a new
 * sink. Requests of the old sink that wait for a retry then use the credentials of the new sink. Each sink registers its sender here.
 */
export class Succession {
  readonly senders: object[] = []
  #next: Succession | undefined

  succeededBy(next: Succession): void {
    this.#next = next
  }

  /** The entry of the active sink; undefined if it is this one. */
  get latest(): Succession | undefined {
    let latest = this.#next
    for (let next = latest; next !== undefined; next = next.#next) latest = next
    return latest
  }
}

/**
 * Receives events that a destination has rejected. `written` returns the text that the sink wrote for the first few of them. The sink
 * has already counted and finalized them.
 */
export type TakeRejected = (events: number, written: (events: number) => readonly string[], message: string) => void

export interface Sink {
  /**
   * Takes a batch, and must release its share of the finalizer, event by event or all at once. A returned promise resolves
   * when the sink accepts more; until then, the sink's buffer fills.
   */
  write(batch: Batch): Promise<void> | undefined
  /** Whether it writes events that are still lines (`ByteBatch`) without creating objects. */
  readonly takesBytes?: boolean
  /** Sends all pending events, and resolves when the destination has answered for each of them. */
  close(): Promise<void>
  /** Throws a PenstockError with the reason if the destination is not usable. */
  healthcheck?(signal: AbortSignal): Promise<void>
}

/** A problem with options that only the component can detect. */
export interface OptionProblem {
  /** Path of the option below the component, such as `batch.max_bytes`; empty for the component as a whole. */
  readonly path: string
  readonly message: string
  /** The remedy. */
  readonly help?: string
  /** With a `warning`, the agent starts anyway. */
  readonly severity?: 'error' | 'warning'
  /** Position inside a text option, such as a program; line and column start at 1. */
  readonly position?: { readonly line: number; readonly column: number }
  readonly rendered?: string
  readonly diagnostic?: ProgramDiagnostic
}

interface Declaration<O extends Options> {
  /** The name that users write as `type`. */
  readonly type: string
  /** First line of the reference page. */
  readonly summary: string
  /** Further text of the reference page, in Markdown. */
  readonly description?: string
  /** Names of the products that it works with, as users search for them. */
  readonly products?: readonly string[]
  /** Names that users know from other products. The agent accepts each, and warns once. */
  readonly aliases?: readonly string[]
  /** For each alias, one sentence: how the events differ from those of the other product's component with that name. */
  readonly aliasNotes?: Readonly<Record<string, string>>
  /** The replacement for this type. */
  readonly deprecated?: string
  readonly options: O
  /**
   * Set if the component uses the standard streams, the metrics or the log of the agent itself. Its options show all files and
   * addresses.
   */
  readonly reaches?: 'agent'
  /**
   * Resources that only one component may use, such as `tcp 0.0.0.0:80` or `dir /var/x`. A configuration in which two
   * components use the same resource is rejected.
   */
  resources?(options: Parsed<O>): readonly string[]
  /**
   * Why log events must be objects for this component, as a clause; undefined if they can stay lines. Without this function, they
   * must always be objects. `takesBytes` of the built component must agree with it.
   */
  objectsBecause?(options: Parsed<O>, globals: Globals): string | undefined
  /** Checks rules that a schema cannot express. Pure: it opens no file and no connection. */
  check?(options: Parsed<O>, globals: Globals): readonly OptionProblem[]
}

export interface SourceDeclaration<O extends Options = Options> extends Declaration<O> {
  readonly kind: 'source'
  readonly outputs: readonly EventType[]
  /** The event types that it emits with these options, if they can be fewer than `outputs`. */
  emits?(options: Parsed<O>): readonly EventType[]
  /** Whether the origin can be acknowledged after delivery. */
  readonly acknowledges: boolean
  /**
   * Whether several agents with this source would emit the same events. Only one replica of an Agent then runs it. `build`
   * is called for each term in which this replica leads, and must not open anything before `run`.
   */
  readonly singleton: boolean
  /** The agents that run it in a cluster: those on nodes, or aggregators; by default both. */
  readonly runsOn?: 'node' | 'aggregator'
  build(options: Parsed<O>, context: SourceContext): Source | Promise<Source>
}

export interface TransformDeclaration<O extends Options = Options> extends Declaration<O> {
  readonly kind: 'transform'
  readonly accepts: readonly EventType[]
  /** The event types that it emits, if they differ from those that it accepts. */
  readonly outputs?: readonly EventType[]
  /** Names of additional outputs, which inputs refer to as `<id>.<name>`. */
  ports?(options: Parsed<O>): readonly string[]
  build(options: Parsed<O>, context: TransformContext): Transform | Promise<Transform>
}

export interface SinkDeclaration<O extends Options = Options> extends Declaration<O> {
  readonly kind: 'sink'
  readonly accepts: readonly EventType[]
  /** Whether a disk buffer may omit `buffer.max_size`, and then has the minimum size. */
  readonly bufferSizeOptional?: boolean
  build(options: Parsed<O>, context: SinkContext): Sink | Promise<Sink>
}

export type AnyDeclaration = SourceDeclaration | TransformDeclaration | SinkDeclaration

/**
 * Options that every sink has in addition to its own. The topology implements them. `inputs` and `type` belong to the
 * graph.
 */
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

/**
 * The same declaration without its option types, for lists of components. This is sound because `build` only receives parsed
 * options.
 */
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
