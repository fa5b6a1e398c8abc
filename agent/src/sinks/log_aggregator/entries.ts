// Writes events as entries of their streams.

import { BoundedMap } from '../../bounded-map.ts'
import type { SinkContext } from '../../component.ts'
import type { AnyEvent } from '../../delivery/batcher.ts'
import type { OpenRequest } from '../../delivery/request.ts'
import { joinedKey } from '../../event/joined-key.ts'
import type { LogEvent } from '../../event/log.ts'
import type { Path } from '../../event/path.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { encoderFailed } from '../../http/sink.ts'
import type { Template } from '../../template.ts'
import { type TimeField, timeField } from '../../time-field.ts'
import { Faults } from './faults.ts'
import { writeWithout } from './hidden.ts'
import type { Labels } from './labels.ts'
import { type Format, markEntry, Stream } from './streams.ts'
import { SuppliedInstants } from './supplied-instants.ts'

/** Streams that are remembered, with the time of their latest entry. */
const keptStreams = { maxEntries: 10_000, maxBytes: 16 << 20, sizeOf: ({ header }: Stream) => 200 + header.length }

/** Characters that the fields in the labels of an event, or in its metadata, may have together; no destination takes as many. */
const maxKeyLength = 131_072
/** Bytes of the labels of a stream. */
const maxHeaderBytes = 1 << 20

/** Milliseconds of the last instant whose nanoseconds fit 64 bits. */
const lastInstantMs = 9_223_372_036_854

export interface EntryOptions {
  readonly labels: Labels
  /** Undefined if entries have none. */
  readonly metadata: Labels | undefined
  readonly format: Format
  /** What becomes of an event that is older than the latest one pushed for its stream. */
  readonly lateAction: 'accept' | 'drop' | 'rewrite_timestamp'
  /** Fields that the line does not have. */
  readonly removed: readonly Path[]
  readonly removesTimestamp: boolean
  /** Whether streams belong to tenants. */
  readonly hasTenants: boolean
  /** A request that has become larger than this ends. */
  readonly maxWritten: number
}

export class EntryWriter {
  readonly #context: SinkContext
  readonly #options: EntryOptions
  readonly #faults: Faults
  readonly #time: TimeField
  readonly #hiddenTimestamp: string | undefined
  readonly #streams = new BoundedMap<Stream>(keptStreams)
  readonly #supplied: SuppliedInstants
  /** The event at hand. */
  #event: LogEvent | undefined

  constructor(context: SinkContext, options: EntryOptions) {
    const { timestampKey } = context.globals.logSchema
    this.#context = context
    this.#options = options
    this.#faults = new Faults(context)
    this.#time = timeField([timestampKey], 'log_schema.timestamp_key', context)
    this.#hiddenTimestamp = options.removesTimestamp ? timestampKey : undefined
    this.#supplied = new SuppliedInstants(options.lateAction !== 'accept')
  }

  readonly #missing = (option: string, template: Template): void =>
    this.#faults.missing(option, template, this.#event as LogEvent)

  /** Writes the events `[from, to)` into a request. */
  write(events: readonly AnyEvent[], from: number, to: number, open: OpenRequest): void {
    const { labels, maxWritten } = this.#options
    let last: Stream | undefined
    let lastKey: string | undefined
    for (let index = from; index < to; index++) {
      const event = events[index] as LogEvent
      this.#event = event
      const key = labels.isStatic ? '' : labels.key(event, this.#missing)
      const stream = last !== undefined && key === lastKey ? last : this.#streamFor(key, open.key)
      if (stream === undefined) {
        encoderFailed(this.#context, 'its labels are too long')
        continue
      }
      last = stream
      lastKey = key
      if (!this.#writeEntry(event, stream, open)) continue
      // A template may name a field many times, and labels may hold any constant text: what a few bytes of each event become
      // only shows when it is written.
      if (open.body.length + open.bytesToCome > maxWritten) {
        open.stoppedAt = index + 1
        break
      }
    }
    this.#time.report()
    this.#faults.report()
  }

  /** False if the event is not sent. */
  #writeEntry(event: LogEvent, stream: Stream, open: OpenRequest): boolean {
    const { format, lateAction, metadata, removed } = this.#options
    const own = this.#time.ofEvent(event)
    let instant = own ?? this.#supplied.next(stream)
    if (instant.ms > lastInstantMs || instant.ms < -lastInstantMs) {
      this.#faults.tooFarAway()
      return false
    }
    if (instant.ms < stream.latestMs || (instant.ms === stream.latestMs && instant.ns < stream.latestNs)) {
      if (lateAction === 'drop') {
        this.#faults.late()
        return false
      }
      if (lateAction === 'rewrite_timestamp') {
        instant = new Timestamp(stream.latestMs, stream.latestNs)
        this.#faults.rewritten()
      }
    }
    let pairs: ReadonlyMap<string, string> | undefined
    if (metadata !== undefined) {
      const key = metadata.key(event, this.#missing)
      if (key.length > maxKeyLength) {
        encoderFailed(this.#context, 'its structured metadata is too long')
        return false
      }
      pairs = metadata.fromKey(key, this.#faults)
    }
    // What is no time cannot be sent beside the line, so it stays in it.
    const hidden = own === undefined ? undefined : this.#hiddenTimestamp
    const start = writeWithout(event, instant, pairs, format, open.body, hidden, removed)
    if (typeof start === 'string') {
      encoderFailed(this.#context, start)
      return false
    }
    markEntry(open, start, stream, instant)
    return true
  }

  /** Undefined if the labels are too long. */
  #streamFor(key: string, tenant: string): Stream | undefined {
    const { labels, format, hasTenants } = this.#options
    if (key.length > maxKeyLength) return undefined
    const id = hasTenants ? joinedKey([tenant, key]) : key
    const known = this.#streams.get(id)
    if (known !== undefined) return known
    let set = labels.fromKey(key, this.#faults)
    if (set.size === 0) {
      set = new Map([['agent', 'penstock']])
      this.#faults.unlabeled()
    }
    const stream = new Stream(format.header(set))
    if (stream.header.length > maxHeaderBytes) return undefined
    // Forgetting a stream only forgets how late is late.
    this.#streams.set(id, stream)
    this.#context.events.count('streams_total')
    return stream
  }
}
