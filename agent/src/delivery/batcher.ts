// Collects events into requests, one open request for each partition. Events are encoded as they arrive, so they are garbage
// before they are old; what waits is bytes. A request ends when it is full or when its first event is `timeoutMs` old.

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
  /** Most bytes by the events' estimated size. */
  readonly maxBytes: number
  readonly maxEvents: number
  readonly timeoutMs: number
  /** Largest body that the destination takes; a request is closed before the next event could pass it. */
  readonly maxBodyBytes?: number | undefined
}

export interface RequestWriter {
  /** The partition of an event; undefined if the event cannot be sent, which the writer has counted. Left out: one for all. */
  partition?: ((event: AnyEvent) => string | undefined) | undefined
  /** Called when a request is opened, to write the part before the first event. */
  begin?: ((request: OpenRequest) => void) | undefined
  /**
   * Appends events `[from, to)` to the request and marks each. Events that cannot be encoded leave nothing behind; the writer
   * has counted them. It is called for some events of a batch at a time: after each call the batcher looks how much was written.
   * A writer that has to stop within a call may do so by `stoppedAt`.
   */
  encode(events: readonly AnyEvent[], from: number, to: number, request: OpenRequest): void
  /** The same for events that are lines still. */
  encodeLines?: ((batch: ByteBatch, from: number, to: number, request: OpenRequest) => void) | undefined
}

/** The events of a batch, as the writer takes them. */
interface Run {
  /** Whether they are lines still: their estimated sizes then bound what is written of them. */
  readonly areLines: boolean
  size(index: number): number
  encode(from: number, to: number, request: OpenRequest): void
}

/** Open requests of partitions at most, and what they take together. Beyond either the oldest is sent before its time. */
const maxOpen = 2000
const maxOpenBytes = 64 << 20

/**
 * The space of an event in a body, from its estimated size: text is escaped, and parts outside the event are added. If it takes more
 * all the same, the request is halved when it is sent.
 */
const roomFor = (bytes: number, events: number): number => 2 * bytes + 256 * events

/**
 * The most that lines take in a body, besides text that the sink adds to each: a character is at most seven bytes of JSON that is quoted
 * once more.
 */
const mostFor = (bytes: number, events: number): number => 8 * bytes + 256 * events

/**
 * Templates and options can add text to each event, which the size of the event does not include. So a request also ends when its body
 * reaches this multiple of `maxBytes`, or this size if there is no limit in bytes.
 */
const bodyFactor = 4
const minBodyLimit = 4 << 20
const defaultBodyLimit = 64 << 20
/** Events that are written between two looks at the body: at first, and once their size in it is known. */
const firstStride = 16
const maxStride = 128

/** Events for which a request has room at first, whatever the last one of the only partition had. */
const minUsualCount = 256
const maxUsualCount = 1 << 14

/** The same after a request with this many: a few more, so that requests of about the same length need no larger places. */
const usualCount = (count: number): number => Math.min(Math.max(count + (count >> 3), minUsualCount), maxUsualCount)

/** Bytes of an open request beside its key and its body. */
const requestBytes = 8192

export class Batcher {
  readonly pool: BodyPool
  readonly #limits: BatchLimits
  readonly #writer: RequestWriter
  readonly #clock: Clock
  readonly #full: (request: OpenRequest) => void
  /** Open requests, the oldest first. Their keys come from data. */
  readonly #open = new Map<string, OpenRequest>()
  #openBytes = 0
  readonly #maxOpenBytes: number
  readonly #maxBodyBytes: number
  /** Bytes after which a request ends although its events are small. */
  readonly #maxWritten: number
  /** The open request of the only partition. */
  #single: OpenRequest | undefined
  /** Events for which the next one has room at first; requests of many partitions differ too much. */
  #usualCount = minUsualCount
  #cancelTimer: (() => void) | undefined

  /** @param full takes each request that is to be sent; it has at least one event */
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
    // Partitions may be many, and most of them small. Of large bodies only what one request after the other needs is kept.
    this.pool =
      writer.partition === undefined
        ? new BodyPool(roomy, roomy > 1 << 22 ? 2 : 8)
        : new BodyPool(Math.min(roomy, 1 << 17), 32)
  }

  /**
   * Takes events of a batch from `from` on, until it has taken all or `pause` returns true after a request was closed. Returns how many
   * events it has taken. The batch must have one share for each event.
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

  /** Takes events of a batch into the only partition. */
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

  /** Takes all: a batch is bounded, and asking twice for a partition would count its errors twice. */
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

  /** Takes events `[from, to)` of one partition. */
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
      // An event that does not fit closes the request; alone it is sent whatever its size.
      while (end < to) {
        const taken = request.count + (end - start)
        const size = run.size(end)
        full = taken > 0 && (taken >= maxEvents || request.bytes + bytes + size > maxBytes)
        if (full) break
        room -= roomFor(size, 1)
        if (room < 0 && taken > 0) {
          // How much room there really is shows when the events before it are written.
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

  /** Returns the place of the first event that was not taken. */
  #encode(run: Run, from: number, to: number, finalizer: Finalizer, request: OpenRequest, bytes: number): number {
    const before = request.count
    const written = request.body.length + request.bytesToCome
    const isSafe = run.areLines && written + mostFor(bytes, to - from) <= this.#maxWritten
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

  /** How many events may be written before the next look at the body: half of what seems to have room. */
  #stride(request: OpenRequest): number {
    const { count, body } = request
    if (count === 0) return firstStride
    const length = body.length + request.bytesToCome
    const fitting = Math.floor(((this.#maxWritten - length) * count) / (2 * length + 1))
    return Math.max(1, Math.min(fitting, maxStride))
  }

  #begin(key: string): OpenRequest {
    const request = new OpenRequest(key, this.pool.take(), undefined, this.#usualCount)
    request.deadline = this.#clock.now() + this.#limits.timeoutMs
    if (this.#writer.partition === undefined) this.#single = request
    else this.#open.set(key, request)
    this.#writer.begin?.(request)
    this.#openBytes += costOf(request)
    this.#cancelTimer ??= this.#clock.after(this.#limits.timeoutMs, this.#expire)
    return request
  }

  /** However many partitions the data name, what is open stays within its bounds. */
  #bound(): void {
    while (this.#open.size > maxOpen || this.#openBytes > this.#maxOpenBytes) {
      this.#close(this.#open.values().next().value as OpenRequest)
    }
  }

  #close(request: OpenRequest): void {
    if (request === this.#single) {
      this.#single = undefined
      this.#usualCount = usualCount(request.count)
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
        break // the rest is younger
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
