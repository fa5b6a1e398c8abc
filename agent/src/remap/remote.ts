// Programs that need the network run in a separate worker, so that only the worker waits for DNS or HTTP. A batch is sent to
// the worker as text and returns as the outcome of each event; `RecordedRuns` replays the outcomes to the component as if the
// program ran there. Tables and the agent's metrics stay here, and the worker requests them.

import { MessageChannel, Worker } from 'node:worker_threads'
import { errorText } from '../errors.ts'
import type { Batch } from '../event/batch.ts'
import { type EventMetadata, type LogEvent, noMetadata } from '../event/log.ts'
import { MetricEvent, type MetricKind, type MetricTags, type TagValue } from '../event/metric.ts'
import type { Timestamp } from '../event/timestamp.ts'
import type { Value, ValueObject } from '../event/value.ts'
import { RemapError, type Result } from './function.ts'
import type { TagMode } from './metric-target.ts'
import type { CompileOptions, Runs } from './program.ts'
import { answerAt } from './sync-port.ts'
import { fromTagged, type Tagged, toTagged } from './tagged.ts'
import { workerFile } from './worker-file.ts'

/** The program that the worker compiles. */
export interface RemoteSetup {
  readonly source: string
  readonly timezone: string | undefined
  readonly readOnly: boolean
  readonly tableNames: readonly string[] | undefined
  readonly tagMode: TagMode
}

/** An event in transfer: a log has fields, a metric has the other members. */
export interface PackedEvent {
  readonly fields?: Tagged
  readonly metric?: PackedMetric
  readonly metadata?: Tagged
  readonly secrets?: EventMetadata['secrets']
}

export interface PackedMetric {
  readonly name: string
  readonly namespace?: string | undefined
  readonly kind: MetricKind
  readonly type: MetricEvent['value']['type']
  readonly timestamp?: Tagged
  readonly intervalMs?: number | undefined
  readonly tags?: [string, TagValue][]
}

/** The result of an event; absent members are unchanged. */
export interface RemoteOutcome extends PackedEvent {
  readonly failure?: Pick<RemapError, 'message' | 'outcome' | 'given'>
  /** The result of a condition. */
  readonly holds?: boolean
}

/** The worker's requests. */
export type WorkerQuestion =
  | { readonly kind: 'metrics' }
  | {
      readonly kind: 'records'
      readonly table: string
      readonly condition: Tagged
      readonly select: readonly string[] | undefined
      readonly caseSensitive: boolean
      readonly wildcard: Tagged | undefined
    }

export type ToWorker = { readonly id: number; readonly events: string }

export type FromWorker =
  | { readonly id: number; readonly outcomes: string }
  | { readonly level: Parameters<NonNullable<CompileOptions['log']>>[0]; readonly text: string }

interface Waiting {
  readonly count: number
  readonly done: (runs: Runs) => void
  readonly closed: (error: Error) => void
}

export class RemoteProgram {
  readonly #setup: RemoteSetup
  readonly #options: CompileOptions
  readonly #writes: boolean
  #worker: Worker | undefined
  #id = 0
  readonly #waiting = new Map<number, Waiting>()

  /** @param writes whether the program changes events */
  constructor(source: string, options: CompileOptions, writes: boolean, tagMode: TagMode) {
    const { timezone, readOnly = false, tableNames } = options
    this.#setup = { source, timezone, readOnly, tableNames, tagMode }
    this.#options = options
    this.#writes = writes
  }

  /** Runs the program on each event. Rejects only if `close` was called first; if the worker ends, its events fail. */
  run(batch: Batch): Promise<Runs> {
    const { promise, resolve, reject } = Promise.withResolvers<Runs>()
    const id = ++this.#id
    this.#waiting.set(id, { count: batch.count, done: resolve, closed: reject })
    this.#worker ??= this.#start()
    // A pending program keeps the process alive.
    this.#worker.ref()
    const packed: (string | null)[] = []
    for (const event of batch.events) packed.push(packedEvent(event))
    this.#worker.postMessage({ id, events: `[${packed.join(',')}]` } satisfies ToWorker)
    return promise
  }

  /** Ends the worker. Pending requests are rejected. */
  close(): void {
    const worker = this.#worker
    this.#worker = undefined
    void worker?.terminate()
    for (const waiting of this.#waiting.values())
      waiting.closed(new Error('The program was stopped before it finished.'))
    this.#waiting.clear()
  }

  #start(): Worker {
    const { port1, port2 } = new MessageChannel()
    const worker = new Worker(workerFile('remote-worker', import.meta.url), {
      workerData: { ...this.#setup, port: port2 },
      transferList: [port2],
    })
    answerAt(port1, (question: WorkerQuestion) => this.#answer(question))
    port1.unref()
    worker.on('message', (message: FromWorker) => {
      if ('level' in message) this.#options.log?.(message.level, message.text)
      else this.#finish(message.id, JSON.parse(message.outcomes) as RemoteOutcome[])
      if (this.#waiting.size === 0) worker.unref()
    })
    let reason = 'it ended'
    worker.on('error', (error) => {
      reason = errorText(error)
    })
    worker.on('exit', () => {
      port1.close()
      if (this.#worker !== worker) return
      this.#worker = undefined // the next batch starts a new worker
      const failure = { message: `the worker of the program failed: ${reason}`, outcome: 'fatal', given: null } as const
      for (const [id, { count }] of this.#waiting) this.#finish(id, new Array<RemoteOutcome>(count).fill({ failure }))
    })
    return worker
  }

  #finish(id: number, outcomes: readonly RemoteOutcome[]): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    waiting?.done(new RecordedRuns(outcomes, this.#writes))
  }

  #answer(question: WorkerQuestion): Tagged {
    if (question.kind === 'metrics') return (this.#options.metrics?.() ?? []).map(toTagged)
    const { table, condition, select, caseSensitive, wildcard } = question
    const wanted = wildcard === undefined ? undefined : fromTagged(wildcard)
    const found = this.#options
      .table?.(table)
      ?.find(fromTagged(condition) as Record<string, Value>, select, caseSensitive, wanted)
    if (found === undefined) return 'the table cannot be read'
    return typeof found === 'string' ? found : found.map(toTagged)
  }
}

/** Text of an event; `null` if it cannot be written, for example because it is nested too deeply. */
function packedEvent(event: LogEvent | MetricEvent): string | null {
  try {
    return JSON.stringify(event instanceof MetricEvent ? packMetric(event) : packLog(event.fields, event.metadata))
  } catch {
    return null
  }
}

function packMetadata({ value, secrets }: EventMetadata): PackedEvent {
  return {
    ...(Object.keys(value).length === 0 ? {} : { metadata: toTagged(value) }),
    ...(Object.keys(secrets).length === 0 ? {} : { secrets }),
  }
}

export function packLog(fields: Value, metadata: EventMetadata): PackedEvent {
  return { fields: toTagged(fields), ...packMetadata(metadata) }
}

export function packMetric(metric: MetricEvent): PackedEvent {
  const { name, namespace, kind, timestamp, intervalMs, tags } = metric
  const packed: PackedMetric = {
    name,
    namespace,
    kind,
    intervalMs,
    type: metric.value.type,
    ...(timestamp === undefined ? {} : { timestamp: toTagged(timestamp) }),
    ...(tags === undefined ? {} : { tags: [...tags] }),
  }
  return { metric: packed, ...packMetadata(metric.metadata) }
}

export function unpackMetadata({ metadata, secrets }: PackedEvent): EventMetadata {
  if (metadata === undefined && secrets === undefined) return noMetadata
  return {
    value: metadata === undefined ? noMetadata.value : (fromTagged(metadata) as ValueObject),
    secrets: secrets ?? noMetadata.secrets,
  }
}

export function unpackTags(packed: PackedMetric): MetricTags | undefined {
  return packed.tags === undefined ? undefined : new Map(packed.tags)
}

export function unpackTimestamp(packed: PackedMetric): Timestamp | undefined {
  return packed.timestamp === undefined ? undefined : (fromTagged(packed.timestamp) as Timestamp)
}

/** The outcomes of a batch, returned one run at a time. */
class RecordedRuns implements Runs {
  readonly frame: { root: Value } = { root: null }
  readonly writes: boolean
  readonly #outcomes: readonly RemoteOutcome[]
  #index = 0

  constructor(outcomes: readonly RemoteOutcome[], writes: boolean) {
    this.#outcomes = outcomes
    this.writes = writes
  }

  run(fields: ValueObject): Result {
    const { failure, fields: root, holds } = this.#next()
    if (failure !== undefined) return new RemapError(failure.message, failure.outcome, failure.given)
    this.frame.root = root === undefined ? fields : fromTagged(root)
    return holds ?? null
  }

  metadataAfter(before: EventMetadata): EventMetadata {
    const outcome = this.#outcomes[this.#index - 1] as RemoteOutcome
    return this.writes ? unpackMetadata(outcome) : before
  }

  runOnMetric(metric: MetricEvent): Result {
    const outcome = this.#next()
    const { failure, metric: after, holds } = outcome
    if (failure !== undefined) return new RemapError(failure.message, failure.outcome, failure.given)
    if (after !== undefined) {
      metric.name = after.name
      metric.namespace = after.namespace
      metric.kind = after.kind
      metric.timestamp = unpackTimestamp(after)
      metric.intervalMs = after.intervalMs
      metric.tags = unpackTags(after)
      metric.metadata = unpackMetadata(outcome)
    }
    return holds ?? null
  }

  #next(): RemoteOutcome {
    return this.#outcomes[this.#index++] as RemoteOutcome
  }
}
