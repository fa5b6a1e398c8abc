// `/v1/tap`: streams a sample of the passing events as JSON lines while the reader is connected. Reservoir sampling selects at most
// `limit` events in an interval, each with the same probability. Events that are not in the sample still reach their sinks.

import type { ServerResponse } from 'node:http'
import { compileEncoder } from '../codecs/encoding/encoder.ts'
import { counted } from '../counted.ts'
import type { Batch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import type { Observer, Outlet } from '../topology/fanout.ts'
import type { Topology } from '../topology/run.ts'

/** Maximum number of unread bytes of a reader. Beyond it, the reader misses events. */
const maxUnread = 1 << 20

interface Origin {
  /** Output id. */
  readonly output: string
  readonly component_id: string
  readonly component_kind: string
  readonly component_type: string
}

interface Kept {
  readonly origin: Origin
  readonly event: LogEvent | MetricEvent
  readonly order: number
}

/** Maximum total size of the events in one sample, by their estimated sizes. */
const maxKeptBytes = 8 << 20

/** Samples the events of one tap. */
class Reservoir {
  readonly #limit: number
  readonly #kept: Kept[] = []
  #bytes = 0
  #seen = 0
  #missed = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  offer(batch: Batch, origin: Origin): void {
    const { count } = batch
    for (let index = 0; index < count; index++) {
      const order = this.#seen++
      const place = order < this.#limit ? order : Math.floor(Math.random() * this.#seen)
      if (place >= this.#limit) continue
      const event = batch.events[index] as LogEvent | MetricEvent
      const bytes = this.#bytes + event.size - (this.#kept[place]?.event.size ?? 0)
      if (bytes > maxKeptBytes) {
        this.#missed++
        continue
      }
      this.#bytes = bytes
      // A copy, because the owner may change the event later.
      const kept = { origin, event: event.copy(), order }
      if (place < this.#kept.length) this.#kept[place] = kept
      else this.#kept.push(kept)
    }
  }

  /** Number of selected events that were too large for the sample, since the last call. */
  takeMissed(): number {
    const missed = this.#missed
    this.#missed = 0
    return missed
  }

  drain(): Kept[] {
    this.#seen = 0
    this.#bytes = 0
    return this.#kept.splice(0).sort((left, right) => left.order - right.order)
  }
}

export interface TapRequest {
  readonly outputsOf: readonly string[]
  readonly inputsOf: readonly string[]
  readonly intervalMs: number
  readonly limit: number
}

/** Samples the events of some outputs in a running topology until it is disposed. It continues after a reload. */
export class Tap implements Disposable {
  readonly #topology: Topology
  readonly #request: Pick<TapRequest, 'outputsOf' | 'inputsOf'>
  readonly #notify: (message: string) => void
  readonly #reservoir: Reservoir
  readonly #write = eventWriter()
  readonly #unlisten: () => void
  #watched = new Map<Outlet, Observer>()

  constructor(topology: Topology, request: Omit<TapRequest, 'intervalMs'>, notify: (message: string) => void) {
    this.#topology = topology
    this.#request = request
    this.#notify = notify
    this.#reservoir = new Reservoir(request.limit)
    this.#unlisten = topology.onChange(() => this.#attach())
    this.#attach()
  }

  /** The sample since the last call. */
  drain(): Kept[] {
    return this.#reservoir.drain()
  }

  /** Number of selected events that were too large for the sample, since the last call. */
  takeMissed(): number {
    return this.#reservoir.takeMissed()
  }

  /** The JSON line for an event. */
  line(kept: Kept): string {
    return this.#write(kept)
  }

  [Symbol.dispose](): void {
    this.#unlisten()
    this.#detach()
  }

  #attach(): void {
    this.#detach()
    const { outlets, notes } = resolvePatterns(this.#topology, this.#request)
    for (const note of notes) this.#notify(note)
    for (const [outlet, origin] of outlets) {
      const observer: Observer = { look: (batch) => this.#reservoir.offer(batch, origin) }
      outlet.watch(observer)
      this.#watched.set(outlet, observer)
    }
  }

  #detach(): void {
    for (const [outlet, observer] of this.#watched) outlet.unwatch(observer)
    this.#watched = new Map()
  }
}

/** Responds to a tap request. The response ends with the connection or the signal. */
export function serveTap(
  topology: Topology,
  query: URLSearchParams,
  response: ServerResponse,
  closing: AbortSignal,
): void {
  const request = tapRequest(query)
  if (typeof request === 'string') {
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify({ error: request })}\n`)
    return
  }
  response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
  response.flushHeaders()
  const notify = (message: string) => response.write(`${JSON.stringify({ kind: 'notification', message })}\n`)
  let missed = 0
  let tooLarge = 0
  const flush = () => {
    const kept = tap.drain()
    tooLarge += tap.takeMissed()
    if (response.writableLength > maxUnread) {
      missed += kept.length
      return
    }
    if (missed > 0) {
      notify(`[tap] ${counted(missed, 'event')} skipped: they were not read in time.`)
      missed = 0
    }
    if (tooLarge > 0) {
      notify(
        `[tap] ${counted(tooLarge, 'event')} skipped: the sample of an interval has at most ${maxKeptBytes} bytes.`,
      )
      tooLarge = 0
    }
    for (const one of kept) response.write(tap.line(one))
  }
  const end = () => {
    clearInterval(timer)
    tap[Symbol.dispose]()
    closing.removeEventListener('abort', finish)
  }
  const finish = () => {
    flush()
    response.end()
  }
  const timer = setInterval(flush, request.intervalMs).unref()
  closing.addEventListener('abort', finish)
  response.on('close', end)
  const tap = new Tap(topology, request, notify)
}

function tapRequest(query: URLSearchParams): TapRequest | string {
  const list = (name: string) =>
    query
      .getAll(name)
      .flatMap((value) => value.split(','))
      .filter((value) => value !== '')
  const outputsOf = list('outputs_of')
  const inputsOf = list('inputs_of')
  const intervalMs = Number(query.get('interval') ?? 500)
  const limit = Number(query.get('limit') ?? 100)
  if (!Number.isInteger(intervalMs) || intervalMs < 10)
    return '`interval` must be a whole number of milliseconds, at least 10.'
  if (!Number.isInteger(limit) || limit < 1 || limit > 10_000) return '`limit` must be a whole number from 1 to 10000.'
  return { outputsOf: outputsOf.length + inputsOf.length === 0 ? ['*'] : outputsOf, inputsOf, intervalMs, limit }
}

/** The outputs that match the patterns of a tap, and notes for its reader about the patterns. */
function resolvePatterns(
  topology: Topology,
  request: Pick<TapRequest, 'outputsOf' | 'inputsOf'>,
): { outlets: Map<Outlet, Origin>; notes: readonly string[] } {
  const byId = new Map<string, { outlet: Outlet; origin: Origin }>()
  for (const [id, { config, outlet }] of topology.sources) {
    byId.set(outlet.id, { outlet, origin: originOf(outlet, id, 'source', config.declaration.type) })
  }
  for (const [id, { config, outlets }] of topology.transforms) {
    for (const outlet of outlets.values()) {
      byId.set(outlet.id, { outlet, origin: originOf(outlet, id, 'transform', config.declaration.type) })
    }
  }
  const notes: string[] = []
  const outlets = new Map<Outlet, Origin>()
  const add = (id: string) => {
    const found = byId.get(id)
    if (found !== undefined) outlets.set(found.outlet, found.origin)
  }
  const note = (pattern: string, matched: boolean) =>
    notes.push(
      matched
        ? `[tap] Pattern '${pattern}' successfully matched.`
        : `[tap] Pattern '${pattern}' failed to match: will retry on configuration reload.`,
    )
  for (const pattern of request.outputsOf) {
    const matches = globTest(pattern)
    const matched = [...byId.keys()].filter(matches)
    for (const id of matched) add(id)
    const sinks = [...topology.sinks.keys()].filter(matches)
    if (sinks.length > 0 && pattern !== '*') {
      notes.push(
        `[tap] Warning: sink outputs cannot be tapped. Output pattern '${pattern}' matches sinks ${JSON.stringify(sinks)}`,
      )
    }
    note(pattern, matched.length > 0)
  }
  for (const pattern of request.inputsOf) {
    const matches = globTest(pattern)
    const readers = [...topology.transforms.values(), ...topology.sinks.values()].filter((node) =>
      matches(node.config.id),
    )
    for (const reader of readers) for (const input of reader.config.inputs) add(input)
    const sources = [...topology.sources.keys()].filter(matches)
    if (sources.length > 0 && pattern !== '*') {
      notes.push(
        `[tap] Warning: source inputs cannot be tapped. Input pattern '${pattern}' matches sources ${JSON.stringify(sources)}`,
      )
    }
    note(pattern, readers.length > 0)
  }
  return { outlets, notes }
}

function originOf(outlet: Outlet, id: string, kind: string, type: string): Origin {
  return { output: outlet.id, component_id: id, component_kind: kind, component_type: type }
}

/** Compiles a glob with `*`, `?` and `[…]`. */
export function globTest(pattern: string): (text: string) => boolean {
  let source = ''
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] as string
    const close = char === '[' ? pattern.indexOf(']', at + 2) : -1
    if (char === '*') source += '.*'
    else if (char === '?') source += '.'
    else if (close > 0) {
      const set = pattern.slice(at + 1, close).replace(/[\\\]^]/g, '\\$&')
      source += set.startsWith('!') ? `[^${set.slice(1)}]` : `[${set}]`
      at = close
    } else source += char.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  }
  const compiled = new RegExp(`^${source}$`, 's')
  return (text) => compiled.test(text)
}

/** Writes one line. `event` is its last member, so that a reader can extract its JSON unchanged. */
function eventWriter(): (kept: Kept) => string {
  const encoder = compileEncoder({ only_fields: undefined, except_fields: undefined, timestamp_format: 'rfc3339' })
  const body = new Body(4096)
  return ({ origin, event }) => {
    body.truncate(0)
    const problem = encoder.encode(event, body)
    const text = problem === undefined ? body.view().toString('utf8') : JSON.stringify({ problem })
    return `${JSON.stringify({ kind: 'event', ...origin }).slice(0, -1)},"event":${text}}\n`
  }
}
