// Collects events into requests, with one open request for each partition. Events are encoded as they arrive, so the event objects
// are short-lived and only bytes wait. A request closes when it is full or when its first event is `timeoutMs` old.

import { ByteBatch } from '../bytes/byte-batch.ts'
import type { Clock } from '../clock.ts'
import type { Batch } from '../event/batch.ts'
import { BodyPool } from '../event/body.ts'
import type { Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { OpenRequest } from './request.ts'

export type AnyEvent = LogEvent | MetricEvent

export interface BatchLimits {
  /** Maximum sum of the events' estimated sizes. */
  readonly maxBytes: number
  readonly maxEvents: number
  readonly timeoutMs: number
  /** Maximum body that the destination accepts. A request is closed before the next event could exceed it. */
  readonly maxBodyBytes?: number | undefined
}

export interface RequestWriter {
  /** The partition of an event; undefined if the event cannot be sent, which the writer has counted. By default, there is one partition. */
  partition?: ((event: AnyEvent) => string | undefined) | undefined
  /** Called when a request is opened, to write the part before the first event. */
  begin?: ((request: OpenRequest) => void) | undefined
  /**
   * Appends events `[from, to)` to the request and marks each. For an event that cannot be encoded, the writer writes nothing and
   * counts the event. The batcher passes a few events at a time and checks the size after each call. To stop early, the writer sets
   * `stoppedAt`.
   */
  encode(events: readonly AnyEvent[], from: number, to: number, request: OpenRequest): void
  /** The same for events that are still lines. */
  encodeLines?: ((batch: ByteBatch, from: number, to: number, request: OpenRequest) => void) | undefined
}

/** The events of a batch in the form that the writer needs. */
interface Run {
  /** Whether the events are still lines, so that their estimated sizes limit the bytes to write. */
  readonly areLines: boolean
  size(index: number): number
  encode(from: number, to: number, request: OpenRequest): void
}

/** Maximum number of open requests of partitions, and their maximum total size. Beyond either, the oldest is sent early. */
const maxOpen = 2000
const maxOpenBytes = 64 << 20

/**
 * The space to reserve for an event in a body, which exceeds its estimated size because of escapes and additional parts. If an event
 * still needs more, the request is halved when it is sent.
 */
const roomFor = (bytes: number, events: number): number => 2 * bytes + 256 * events

/**
 * Maximum space of lines in a body, without text that the sink adds to each: a character becomes at most seven bytes of JSON that is
 * quoted once more.
 */
const maxSpaceFor = (bytes: number, events: number): number => 8 * bytes + 256 * events

/**
 * Templates and options can add text to each event, which its estimated size does not include. So a request also closes when its body
 * reaches this multiple of `maxBytes`, or the default limit if there is no `maxBytes`.
 */
const bodyFactor = 4
const minBodyLimit = 4 << 20
const defaultBodyLimit = 64 << 20
/** Number of events to write between two checks of the body: at first, and at most once their encoded size is known. */
const firstStride = 16
const maxStride = 128

/** Limits of the initial capacity of a request, in events. */
const minInitialCapacity = 256
const maxInitialCapacity = 1 << 14

/** The initial capacity after a request with this many events: a few more, so that a request of similar length need not grow. */
const capacityAfter = (count: number): number =>
  Math.min(Math.max(count + (count >> 3), minInitialCapacity), maxInitialCapacity)

/** Memory of an open request in bytes, without its key and its body. */
const requestBytes = 8192

export class Batcher {
  readonly pool: BodyPool
  readonly #limits: BatchLimits
  readonly #writer: RequestWriter
  readonly #clock: Clock
  readonly #full: (request: OpenRequest) => void
  /** Open requests, oldest first. Their keys come from data. */
  readonly #open = new Map<string, OpenRequest>()
  #openBytes = 0
  readonly #maxOpenBytes: number
  readonly #maxBodyBytes: number
  /** Body size at which a request closes even if its events are small. */
  readonly #maxWritten: number
  /** The open request of the only partition. */
  #single: OpenRequest | undefined
  /** Initial capacity of the next request in events. With many partitions it stays constant, because their requests differ too much. */
  #initialCapacity = minInitialCapacity
  #cancelTimer: (() => void) | undefined

  /** @param full receives each closed request, which has at least one event */
  constructor(limits: BatchLimits, writer: RequestWriter, clock: Clock, full: (request: OpenRequest) => void) {
    this.#limits = limits
    this.#writer = writer
    this.#clock = clock
    this.#full = full
    this.#maxBodyBytes = limits.maxBodyBytes ?? Number.POSITIVE_INFINITY
    this.#maxOpenBytes = Number.isFinite(limits.maxBytes) ? Math.max(maxOpenBytes, 2 * limits.maxBytes) : maxOpenBytes
    this.#maxWritten = Number.isFinite(limits.maxBytes)
      ? Math.max(minBodyLimit, bodyFactor * limits.maxBytes)
      : defaultBodyLimit
    const roomy = Math.min(Math.max(limits.maxBytes * 1.25, 1 << 16), 1 << 24)
    // There may be many partitions, most of them small, so their bodies begin small. The pool keeps only as many large bodies as
    // consecutive requests need.
    this.pool =
      writer.partition === undefined
        ? new BodyPool(roomy, roomy > 1 << 22 ? 2 : 8)
        : new BodyPool(1 << 13, 32, Math.min(4 * roomy, 1 << 19))
  }

  /**
   * Adds the events of a batch, starting at `from`, until all are added or `pause` returns true after a request was closed. Returns
   * the position of the next event. The batch must have one finalizer share for each event.
   */
  add(batch: Batch, from: number, pause: () => boolean): number {
    const { finalizer } = batch
    const count = batch.count
    const lines = batch instanceof ByteBatch ? batch : undefined
    if (this.#writer.partition !== undefined) {
      const taken = this.#addPartitioned(batch.events, from, finalizer)
      lines?.done()
      return taken
    }
    const taken = this.#addSingle(
      lines === undefined || this.#writer.encodeLines === undefined ? this.#objects(batch.events) : this.#lines(lines),
      batch,
      from,
      pause,
    )
    if (taken === count) lines?.done()
    return taken
  }

  #objects(events: readonly AnyEvent[]): Run {
    const writer = this.#writer
    return {
      areLines: false,
      size: (index) => (events[index] as AnyEvent).size,
      encode: (from, to, request) => writer.encode(events, from, to, request),
    }
  }

  #lines(batch: ByteBatch): Run {
    const writer = this.#writer
    return {
      areLines: true,
      size: (index) => batch.size(index),
      encode: (from, to, request) => writer.encodeLines?.(batch, from, to, request),
    }
  }

  /** Adds events of a batch to the only partition. */
  #addSingle(run: Run, batch: Batch, from: number, pause: () => boolean): number {
    const { count, finalizer } = batch
    const { maxBytes, maxEvents } = this.#limits
    let request = this.#single
    if (from === 0 && count <= maxEvents && batch.bytes <= maxBytes) {
      if (request === undefined) request = this.#begin('')
      const fits = request.body.length + roomFor(batch.bytes, count) <= this.#maxBodyBytes
      if (fits && request.count + count <= maxEvents && request.bytes + batch.bytes <= maxBytes) {
        const end = this.#encode(run, 0, count, finalizer, request, batch.bytes)
        if (request.count >= maxEvents || request.bytes >= maxBytes || request.stoppedAt !== undefined) {
          this.#close(request)
        }
        return end === count || pause() ? end : this.#addRun(run, end, count, finalizer, '', pause)
      }
    }
    return this.#addRun(run, from, count, finalizer, '', pause)
  }

  /** Closes every open request. */
  flush(): void {
    this.#stopTimer()
    const single = this.#single
    if (single !== undefined) this.#close(single)
    for (const request of [...this.#open.values()]) this.#close(request)
  }

  /** Adds all events without a pause: a batch is bounded, and computing a partition twice would count its errors twice. */
  #addPartitioned(events: readonly AnyEvent[], from: number, finalizer: Finalizer): number {
    const partition = this.#writer.partition as (event: AnyEvent) => string | undefined
    const run = this.#objects(events)
    let start = from
    let key = from < events.length ? partition(events[from] as AnyEvent) : undefined
    while (start < events.length) {
      let end = start + 1
      let next: string | undefined
      while (end < events.length) {
        next = partition(events[end] as AnyEvent)
        if (next !== key) break
        end++
      }
      if (key === undefined) finalizer.release(end - start, 'rejected')
      else this.#addRun(run, start, end, finalizer, key)
      start = end
      key = next
    }
    return start
  }

  /** Adds events `[from, to)` of one partition. */
  #addRun(run: Run, from: number, to: number, finalizer: Finalizer, key: string, pause?: () => boolean): number {
    const { maxBytes, maxEvents } = this.#limits
    const partitioned = this.#writer.partition !== undefined
    let start = from
    while (start < to) {
      const request = (partitioned ? this.#open.get(key) : this.#single) ?? this.#begin(key)
      let bytes = 0
      let end = start
      let full = false
      let room = this.#maxBodyBytes - request.body.length
      // An event that does not fit closes the request. A request with a single event is sent regardless of its size.
      while (end < to) {
        const taken = request.count + (end - start)
        const size = run.size(end)
        full = taken > 0 && (taken >= maxEvents || request.bytes + bytes + size > maxBytes)
        if (full) break
        room -= roomFor(size, 1)
        if (room < 0 && taken > 0) {
          // The actual space left is known only after the events before this one are written.
          full = end === start
          break
        }
        bytes += size
        end++
      }
      if (end > start) start = this.#encode(run, start, end, finalizer, request, bytes)
      if (full || request.stoppedAt !== undefined || request.count >= maxEvents || request.bytes >= maxBytes) {
        this.#close(request)
        if (pause?.() === true) return start
      } else if (partitioned) {
        this.#bound()
      }
    }
    return start
  }

  /** Returns the position of the first event that was not added. */
  #encode(run: Run, from: number, to: number, finalizer: Finalizer, request: OpenRequest, bytes: number): number {
    const before = request.count
    const written = request.body.length + request.bytesToCome
    const isSafe = run.areLines && written + maxSpaceFor(bytes, to - from) <= this.#maxWritten
    let end = from
    while (end < to && request.stoppedAt === undefined) {
      const stop = isSafe ? to : Math.min(to, end + this.#stride(request))
      run.encode(end, stop, request)
      end = request.stoppedAt ?? stop
      if (request.body.length + request.bytesToCome > this.#maxWritten) request.stoppedAt = end
    }
    this.#openBytes += request.body.length + request.bytesToCome - written
    const taken = request.count - before
    request.bytes += end === to ? bytes : sizeOf(run, from, end)
    if (taken > 0) request.owners.add(finalizer, taken)
    if (taken < end - from) finalizer.release(end - from - taken, 'rejected')
    return end
  }

  /** How many events to write before the next check of the body: half of the number that is expected to fit. */
  #stride(request: OpenRequest): number {
    const { count, body } = request
    if (count === 0) return firstStride
    const length = body.length + request.bytesToCome
    const expected = Math.floor(((this.#maxWritten - length) * count) / (2 * length + 1))
    return Math.max(1, Math.min(expected, maxStride))
  }

  #begin(key: string): OpenRequest {
    const request = new OpenRequest(key, this.pool.take(), undefined, this.#initialCapacity)
    request.deadline = this.#clock.now() + this.#limits.timeoutMs
    if (this.#writer.partition === undefined) this.#single = request
    else this.#open.set(key, request)
    this.#writer.begin?.(request)
    this.#openBytes += costOf(request)
    this.#cancelTimer ??= this.#clock.after(this.#limits.timeoutMs, this.#expire)
    return request
  }

  /** Limits the open requests, however many partitions the data contains. */
  #bound(): void {
    while (this.#open.size > maxOpen || this.#openBytes > this.#maxOpenBytes) {
      this.#close(this.#open.values().next().value as OpenRequest)
    }
  }

  #close(request: OpenRequest): void {
    if (request === this.#single) {
      this.#single = undefined
      this.#initialCapacity = capacityAfter(request.count)
    } else this.#open.delete(request.key)
    this.#openBytes -= costOf(request)
    if (request.count > 0) this.#full(request)
    else this.pool.give(request.body)
  }

  readonly #expire = (): void => {
    this.#cancelTimer = undefined
    const now = this.#clock.now()
    let next = Number.POSITIVE_INFINITY
    const single = this.#single
    if (single !== undefined) {
      if (single.deadline <= now) this.#close(single)
      else next = single.deadline
    }
    for (const request of this.#open.values()) {
      if (request.deadline > now) {
        next = Math.min(next, request.deadline)
        break // the remaining requests are younger
      }
      this.#close(request)
    }
    if (next < Number.POSITIVE_INFINITY) this.#cancelTimer = this.#clock.after(next - now, this.#expire)
  }

  #stopTimer(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }
}

function costOf({ key, body, bytesToCome }: OpenRequest): number {
  return requestBytes + 2 * key.length + body.length + bytesToCome
}

function sizeOf(run: Run, from: number, to: number): number {
  let bytes = 0
  for (let index = from; index < to; index++) bytes += run.size(index)
  return bytes
}
