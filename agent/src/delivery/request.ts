// One outgoing request: the bytes of a batch, and the finalizers of its events. Events are encoded only once. A part of a request (after a
// partial failure, or half of a request that is too large) is cut from its bytes, because the position of each event is known.

import type { Body, BodyPool } from '../event/body.ts'
import type { EventStatus, Finalizer } from '../event/finalizer.ts'
import { givePositions, type Positions, takePositions } from './positions.ts'

/** A request that is still being filled. A sink writes an event into `body` and then calls `mark`. */
export class OpenRequest {
  readonly key: string
  readonly body: Body
  /** Events in the body. */
  count = 0
  /** Sum of their estimated sizes. */
  bytes = 0
  /** Where each event begins and ends in the body. */
  #positions: Positions
  readonly owners: Owners
  /** Additional state of the sink, for its `finish`. */
  state: unknown
  /** Bytes that `finish` will append to the body. */
  bytesToCome = 0
  /** Set by a writer that stops before this position because the request is long enough. */
  stoppedAt: number | undefined
  /** The time at which the request is sent even if it is not full, in milliseconds of the clock. */
  deadline = 0

  /** @param events initial capacity */
  constructor(key: string, body: Body, owners = new Owners(), events = 256) {
    this.key = key
    this.body = body
    this.owners = owners
    this.#positions = takePositions(events)
  }

  get starts(): Uint32Array {
    return this.#positions.starts
  }

  get ends(): Uint32Array {
    return this.#positions.ends
  }

  /** Marks the bytes from `start` to the end as one event. */
  mark(start: number, end = this.body.length): void {
    const index = this.count++
    if (index === this.ends.length) this.#grow(this.count)
    const { starts, ends } = this.#positions
    starts[index] = start
    ends[index] = end
  }

  /**
   * Marks consecutive events, beginning at `start`.
   * @param ends the end of each event, to which `shift` is added
   * @param between number of bytes between two events
   * @param own how many of these bytes belong to the event before them
   */
  markEach(start: number, ends: Int32Array, count: number, shift: number, between: number, own: number): void {
    if (this.count + count > this.ends.length) this.#grow(this.count + count)
    const to = this.#positions
    let from = start
    for (let index = 0; index < count; index++) {
      const end = (ends[index] as number) + shift
      to.starts[this.count] = from
      to.ends[this.count++] = end + own
      from = end + between
    }
  }

  /** Marks copies of the events `[first, last]` of another body, which lie `shift` bytes further there. */
  markMoved(starts: Uint32Array, ends: Uint32Array, first: number, last: number, shift: number): void {
    const count = this.count + last - first + 1
    if (count > this.ends.length) this.#grow(count)
    const to = this.#positions
    const place = this.count - first
    for (let index = first; index <= last; index++) {
      to.starts[index + place] = (starts[index] as number) + shift
      to.ends[index + place] = (ends[index] as number) + shift
    }
    this.count = count
  }

  /** Gives the memory of the positions to another request. They must not be used afterwards. */
  forgetPositions(): void {
    const positions = this.#positions
    this.#positions = noPositions
    givePositions(positions)
  }

  #grow(count: number): void {
    const before = this.#positions
    this.#positions = takePositions(Math.max(before.ends.length * 2, count))
    this.#positions.starts.set(before.starts)
    this.#positions.ends.set(before.ends)
    givePositions(before)
  }
}

const noPositions: Positions = { starts: new Uint32Array(0), ends: new Uint32Array(0) }

/** The finalizers of events: consecutive events with the same finalizer form a run, with one share for each event. */
export class Owners {
  readonly finalizers: Finalizer[] = []
  readonly counts: number[] = []
  /** Maps the position of an event to its place in the runs; undefined if they are the same. */
  readonly #order: (() => Uint32Array) | undefined

  constructor(order?: () => Uint32Array) {
    this.#order = order
  }

  /**
   * The same owners after the events were reordered. @param order returns, for each position, the previous one; called only if parts of
   * the request are needed
   */
  ordered(order: () => Uint32Array): Owners {
    const owners = new Owners(order)
    owners.finalizers.push(...this.finalizers)
    owners.counts.push(...this.counts)
    return owners
  }

  add(finalizer: Finalizer, count: number): void {
    const last = this.finalizers.length - 1
    if (last >= 0 && this.finalizers[last] === finalizer) {
      this.counts[last] = (this.counts[last] as number) + count
    } else {
      this.finalizers.push(finalizer)
      this.counts.push(count)
    }
  }

  release(status: EventStatus): void {
    for (let run = 0; run < this.finalizers.length; run++) {
      ;(this.finalizers[run] as Finalizer).release(this.counts[run] as number, status)
    }
    this.finalizers.length = 0
    this.counts.length = 0
  }

  /** The owners of the events at these positions, in their order. */
  select(positions: ArrayLike<number>): Owners {
    const selected = new Owners()
    if (this.finalizers.length === 1) {
      if (positions.length > 0) selected.add(this.finalizers[0] as Finalizer, positions.length)
      return selected
    }
    const order = this.#order?.()
    const lasts: number[] = []
    let last = 0
    for (const count of this.counts) {
      last += count
      lasts.push(last)
    }
    for (let index = 0; index < positions.length; index++) {
      const position = positions[index] as number
      const place = order === undefined ? position : (order[position] as number)
      selected.add(this.finalizers[runOf(lasts, place)] as Finalizer, 1)
    }
    return selected
  }
}

function runOf(lasts: readonly number[], position: number): number {
  let low = 0
  let high = lasts.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((lasts[middle] as number) > position) high = middle
    else low = middle + 1
  }
  return low
}

/** Assembles selected events of a request into a new body, such as `[a,b]` from `[a,x,b]`. */
export type Assemble = (
  from: { readonly source: Buffer; readonly starts: Uint32Array; readonly ends: Uint32Array; readonly state: unknown },
  positions: ArrayLike<number>,
  into: OpenRequest,
) => void

/** A finished request. All attempts send the same `payload`. */
export interface Request {
  readonly key: string
  /** Empty until it is compressed. */
  readonly payload: Buffer
  /** Resolves when either the payload or `problem` is set, and is undefined afterwards. Never rejects. */
  readonly compressing: Promise<void> | undefined
  /** The reason why the body could not be compressed, and nothing can be sent. */
  readonly problem: unknown
  readonly count: number
  readonly bytes: number
  /** Size before compression. */
  readonly bodyBytes: number
  readonly owners: Owners
  /** How often these events were already sent, in this request or in the one that it was cut from. */
  resends: number
  /** State that all parts of a request share: how often the request or one of its parts was halved. */
  readonly origin: { halvings: number }
  /** Two requests with half of the events each. This request must not be used afterwards. */
  halves(): readonly [Request, Request]
  /**
   * Ends the delivered and the rejected events, and returns a request with the rest; undefined if there are none. Positions must be
   * ascending. This request must not be used afterwards.
   */
  divide(delivered: ArrayLike<number>, rejected: ArrayLike<number>, rest: ArrayLike<number>): Request | undefined
  /**
   * A connection begins to read the payload. The memory is not released before it calls the returned function, even if the request
   * ends earlier.
   */
  lend(): () => void
  /** The encoded text of the first events, or of those at the given positions, up to this number. Long text is truncated. */
  written(max: number, positions?: ArrayLike<number>): string[]
  /** Reports the status to the finalizers, and releases the memory. */
  end(status: EventStatus): void
}

/** Maximum length of the text of one rejected event. */
const maxWritten = 64 * 1024

export interface Codec {
  /** The bytes to send. Returns the same buffer if there is no compression. */
  compress(body: Buffer): Buffer
  /**
   * Does the same on another thread; returns undefined if the caller must use `compress`. The body must not change before the promise
   * settles. Codecs for senders that need the payload immediately omit this method.
   */
  readonly compressOnPool?: ((body: Buffer) => Promise<Buffer> | undefined) | undefined
  decompress(payload: Buffer): Buffer
}

const nothing = Buffer.alloc(0)

/** Turns an open request into a finished one. */
export function sealRequest(open: OpenRequest, pool: BodyPool, codec: Codec, assemble: Assemble): Request {
  return new SealedRequest(open, open.owners, pool, codec, assemble)
}

class SealedRequest implements Request {
  readonly key: string
  payload: Buffer = nothing
  compressing: Promise<void> | undefined
  problem: unknown
  readonly count: number
  readonly bytes: number
  readonly bodyBytes: number
  readonly owners: Owners
  resends = 0
  readonly origin: { halvings: number }
  readonly #open: OpenRequest
  #body: Body | undefined
  /** Whether the bytes are no longer needed. */
  #isOver = false
  /** Number of connections that read the payload. */
  #loans = 0
  readonly #pool: BodyPool
  readonly #codec: Codec
  readonly #assemble: Assemble

  constructor(
    open: OpenRequest,
    owners: Owners,
    pool: BodyPool,
    codec: Codec,
    assemble: Assemble,
    origin = { halvings: 0 },
  ) {
    this.origin = origin
    this.key = open.key
    this.count = open.count
    this.bytes = open.bytes
    this.owners = owners
    this.#open = open
    this.#pool = pool
    this.#codec = codec
    this.#assemble = assemble
    this.#body = open.body
    const view = open.body.view()
    this.bodyBytes = view.length
    try {
      const aside = codec.compressOnPool?.(view)
      if (aside === undefined) this.#compressed(codec.compress(view), view)
      else this.compressing = aside.then((payload) => this.#compressed(payload, view), this.#failed)
    } catch (error) {
      this.#failed(error)
    }
  }

  #compressed(payload: Buffer, body: Buffer): void {
    this.payload = payload
    this.compressing = undefined
    // The uncompressed body is no longer needed. If a part must be cut from it, which is rare, the payload is decompressed.
    if (payload !== body || this.#isOver) this.#giveBody()
  }

  readonly #failed = (error: unknown): void => {
    this.problem = error
    this.compressing = undefined
    if (this.#isOver) this.#giveBody()
  }

  halves(): readonly [Request, Request] {
    this.origin.halvings++
    const middle = this.count >> 1
    const source = this.#source()
    const first = this.#part(source, range(0, middle))
    const second = this.#part(source, range(middle, this.count))
    this.#free()
    return [first, second]
  }

  divide(delivered: ArrayLike<number>, rejected: ArrayLike<number>, rest: ArrayLike<number>): Request | undefined {
    const part = rest.length === 0 ? undefined : this.#part(this.#source(), rest)
    this.#free()
    this.owners.select(delivered).release('delivered')
    this.owners.select(rejected).release('rejected')
    return part
  }

  written(max: number, positions?: ArrayLike<number>): string[] {
    const { starts, ends } = this.#open
    const source = this.#source()
    return Array.from({ length: Math.min(max, positions?.length ?? this.count) }, (_, index) => {
      const position = positions?.[index] ?? index
      const start = starts[position] as number
      const end = ends[position] as number
      const text = source.toString('utf8', start, Math.min(end, start + maxWritten))
      return end - start > maxWritten ? `${text}...` : text
    })
  }

  #source(): Buffer {
    return this.#body?.view() ?? this.#codec.decompress(this.payload)
  }

  #part(source: Buffer, positions: ArrayLike<number>): Request {
    const { starts, ends, state } = this.#open
    const open = new OpenRequest(this.key, this.#pool.take())
    this.#assemble({ source, starts, ends, state }, positions, open)
    open.bytes = Math.round((this.bytes * positions.length) / this.count)
    const owners = this.owners.select(positions)
    const part = new SealedRequest(open, owners, this.#pool, this.#codec, this.#assemble, this.origin)
    part.resends = this.resends
    return part
  }

  lend(): () => void {
    this.#loans++
    return () => {
      if (--this.#loans === 0 && this.#isOver) this.#giveBody()
    }
  }

  end(status: EventStatus): void {
    this.#free()
    this.owners.release(status)
  }

  /** Returns the body to the pool, after other threads and connections have finished reading it. */
  #free(): void {
    this.#isOver = true
    this.#open.forgetPositions()
    if (this.compressing === undefined && this.#loans === 0) this.#giveBody()
  }

  #giveBody(): void {
    if (this.#body !== undefined) this.#pool.give(this.#body)
    this.#body = undefined
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

/** An `Assemble` for separated events between a prefix and a suffix. */
export function framed(prefix: string, separator: string, suffix: string): Assemble {
  return ({ source, starts, ends }, positions, into) => {
    const body = into.body
    body.writeText(prefix)
    for (let index = 0; index < positions.length; index++) {
      const position = positions[index] as number
      if (index > 0) body.writeText(separator)
      const start = body.length
      body.writeBytes(source.subarray(starts[position], ends[position]))
      into.mark(start)
    }
    body.writeText(suffix)
  }
}
