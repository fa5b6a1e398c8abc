// Writes events as entries of their streams.

import { BoundedMap, ownText } from '../../bounded-map.ts'
import type { ByteBatch } from '../../bytes/byte-batch.ts'
import type { LineTimes } from '../../bytes/byte-lines.ts'
import { allFields, type Form } from '../../bytes/form.ts'
import type { LineOrigin } from '../../bytes/line-origin.ts'
import type { SinkContext } from '../../component.ts'
import type { AnyEvent } from '../../delivery/batcher.ts'
import { encoderFailed } from '../../delivery/failed-events.ts'
import type { OpenRequest } from '../../delivery/request.ts'
import { joinedKey } from '../../event/joined-key.ts'
import type { LogEvent } from '../../event/log.ts'
import type { Path } from '../../event/path.ts'
import { Timestamp } from '../../event/timestamp.ts'
import type { Likeness, Template } from '../../template.ts'
import { type TimeField, timeField } from '../../time-field.ts'
import { Faults } from './faults.ts'
import { isRootField, writeWithout } from './hidden.ts'
import type { StreamLabels } from './labels.ts'
import { LineRun, maxRun } from './line-run.ts'
import { markEntry, markRun, type PushFormat, Stream } from './streams.ts'
import { SuppliedInstants } from './supplied-instants.ts'

/** Maximum number of remembered streams and their latest entry times. */
const keptStreams = { maxEntries: 10_000, maxBytes: 16 << 20, sizeOf: ({ header }: Stream) => 400 + header.length }

/** Limits for cached label keys. */
const keptKeys = { maxEntries: 4096, maxBytes: 2 << 20, sizeOf: (key: string) => 2 * key.length }

/** Maximum total length of the label or metadata fields of an event; no destination accepts more. */
const maxKeyLength = 131_072
/** Maximum size of a stream's labels. */
const maxHeaderBytes = 1 << 20

/** Last instant, in milliseconds, whose nanoseconds fit in 64 bits. */
const lastInstantMs = 9_223_372_036_854

/** First instant, in 2001, whose nanoseconds have 19 digits. */
const minKernelMs = 1e12
/** Entries of streams with longer labels are written one by one. */
const longHeaderBytes = 4096
const entryTail = Buffer.from(']')

export interface EntryOptions {
  readonly labels: StreamLabels
  /** Undefined if entries have no metadata. */
  readonly metadata: StreamLabels | undefined
  readonly format: PushFormat
  /** Handling of an event older than the latest one pushed for its stream. */
  readonly lateAction: 'accept' | 'drop' | 'rewrite_timestamp'
  /** Fields removed from the line. */
  readonly removed: readonly Path[]
  readonly removesTimestamp: boolean
  /** Whether streams belong to tenants. */
  readonly hasTenants: boolean
  /** A request ends when its body is larger than this. */
  readonly maxWritten: number
}

/** Assigns numbers to batches: the same number if lines have the same origin and events have the same form. */
class Kinds {
  readonly #numbers = new WeakMap<LineOrigin, WeakMap<Form, number>>()
  #last = 0

  of({ lines: { origin }, form }: ByteBatch): number {
    let ofForms = this.#numbers.get(origin)
    if (ofForms === undefined) {
      ofForms = new WeakMap()
      this.#numbers.set(origin, ofForms)
    }
    let number = ofForms.get(form)
    if (number === undefined) {
      number = ++this.#last
      ofForms.set(form, number)
    }
    return number
  }
}

export class EntryWriter {
  readonly #context: SinkContext
  readonly #options: EntryOptions
  readonly #faults: Faults
  readonly #time: TimeField
  readonly #hiddenTimestamp: string | undefined
  readonly #streams = new BoundedMap<Stream>(keptStreams)
  /** Label keys, by the bytes of the lines from which they are rendered. */
  readonly #keys = new BoundedMap<string>(keptKeys)
  readonly #kinds = new Kinds()
  readonly #supplied: SuppliedInstants
  /** The current event. */
  #event: LogEvent | undefined
  /** Number of templates that could not be rendered for the current event. */
  #misses = 0
  readonly #timestampKey: string
  /** The facts shared by events of one stream; undefined if events are not written as byte lines. */
  readonly #linesLikeness: Likeness | undefined
  /** Names of the fields removed from the line of an entry, with and without the timestamp. */
  readonly #hiddenNames: readonly string[]
  readonly #hiddenWithTime: readonly string[]
  /** Group of each event in the batch, and the known stream of each group. */
  #groups: Int32Array | undefined
  #groupStreams: (Stream | undefined)[] = []
  /** Whether an event of the batch may have its own time in its message. */
  #mayHaveOwnTime = false
  /** Entries to be written by one call. */
  readonly #run = new LineRun()
  readonly #ends = new Int32Array(maxRun)

  constructor(context: SinkContext, options: EntryOptions) {
    const { timestampKey } = context.globals.logSchema
    this.#context = context
    this.#options = options
    this.#faults = new Faults(context)
    this.#time = timeField([timestampKey], 'log_schema.timestamp_key', context)
    this.#hiddenTimestamp = options.removesTimestamp ? timestampKey : undefined
    this.#supplied = new SuppliedInstants(options.lateAction !== 'accept')
    this.#timestampKey = timestampKey
    const { format, labels, metadata, removed } = options
    this.#hiddenNames = removed.map(({ segments }) => segments[0] as string)
    this.#hiddenWithTime =
      this.#hiddenTimestamp === undefined ? this.#hiddenNames : [timestampKey, ...this.#hiddenNames]
    const isSimple = format.lineFields !== undefined && metadata === undefined && removed.every(isRootField)
    this.#linesLikeness = isSimple ? labels.likeness : undefined
  }

  readonly #missing = (option: string, template: Template): void => {
    this.#misses++
    this.#faults.missing(option, template, this.#event as LogEvent)
  }

  /** Writes the events `[from, to)` into a request. */
  write(events: readonly AnyEvent[], from: number, to: number, open: OpenRequest): void {
    const { labels, maxWritten } = this.#options
    this.#supplied.begin()
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
      // A template may use a field many times, and labels may contain long constant texts, so the size of an event in the
      // request is known only after writing.
      if (open.body.length + open.bytesToCome > maxWritten) {
        open.stoppedAt = index + 1
        break
      }
    }
    this.#time.report()
    this.#faults.report()
  }

  /** The same for byte lines. */
  writeLines(batch: ByteBatch, from: number, to: number, open: OpenRequest): void {
    const { maxWritten } = this.#options
    const likeness = this.#linesLikeness
    const times = likeness === undefined ? undefined : batch.timesForField(this.#timestampKey)
    const groups = likeness === undefined ? undefined : batch.groups(likeness.fields, likeness.second)
    if (groups === undefined || times === undefined) {
      this.write(batch.events, from, to, open)
      return
    }
    this.#supplied.begin()
    this.#mayHaveOwnTime = batch.mayHaveMember(this.#timestampKey)
    const streams = this.#streamsOf(groups)
    for (let at = from; at < to; at++) {
      const group = groups[at] as number
      if (group < 0) {
        this.#flush(batch, open)
        this.write([batch.eventAt(at)], 0, 1, open)
        if (open.stoppedAt !== undefined) open.stoppedAt = at + 1
      } else {
        const stream = streams[group] ?? this.#streamOfGroup(batch, at, open.key, streams, group)
        if (stream === undefined) encoderFailed(this.#context, 'its labels are too long')
        else this.#addLine(batch, at, stream, times, open)
      }
      if (open.stoppedAt !== undefined) break
      if (open.body.length + open.bytesToCome > maxWritten) {
        open.stoppedAt = at + 1
        break
      }
    }
    this.#flush(batch, open)
    this.#time.report()
    this.#faults.report()
  }

  /** The stream of each group; undefined until an event of the group has been processed. */
  #streamsOf(groups: Int32Array): (Stream | undefined)[] {
    if (this.#groups !== groups) {
      this.#groups = groups
      this.#groupStreams = []
    }
    return this.#groupStreams
  }

  /** Undefined if the labels are too long. */
  #streamOfGroup(
    batch: ByteBatch,
    at: number,
    tenant: string,
    streams: (Stream | undefined)[],
    group: number,
  ): Stream | undefined {
    const { labels } = this.#options
    this.#misses = 0
    const text = labels.likeness?.isDated === false ? batch.groupText(at) : undefined
    const id = text === undefined ? undefined : `${this.#kinds.of(batch)} ${text}`
    let key = id === undefined ? undefined : this.#keys.get(id)
    if (key === undefined) {
      const event = batch.eventAt(at)
      this.#event = event
      key = labels.key(event, this.#missing)
      if (id !== undefined && this.#misses === 0) this.#keys.set(id, ownText(key))
    }
    const stream = this.#streamFor(key, tenant)
    // Missing fields are counted for each event.
    if (this.#misses === 0) streams[group] = stream
    return stream
  }

  /** Adds the entry of a line to the run; writes or discards an entry that the run cannot hold. */
  #addLine(batch: ByteBatch, at: number, stream: Stream, times: LineTimes | 'none', open: OpenRequest): void {
    const run = this.#run
    const line = batch.lineOf(at)
    const value = this.#mayHaveOwnTime ? batch.memberOf(at, this.#timestampKey) : undefined
    let ms: number
    let ns: number
    let hasOwn = true
    if (value === undefined && times !== 'none') {
      ms = times.ms[line] as number
      ns = times.ns[line] as number
    } else {
      const own = value === undefined ? undefined : this.#time.ofValue(value)
      hasOwn = own !== undefined
      if (own === undefined) this.#supplied.advance(stream)
      ms = own?.ms ?? this.#supplied.ms
      ns = own?.ns ?? this.#supplied.ns
    }
    const isUsual = ms >= minKernelMs && ms <= lastInstantMs
    if (!isUsual || ms < stream.latestMs || (ms === stream.latestMs && ns < stream.latestNs)) {
      const instant = this.#instantFor(new Timestamp(ms, ns), stream)
      if (instant === undefined) {
        this.#flush(batch, open)
        return
      }
      ms = instant.ms
      ns = instant.ns
    }
    const hidden = hasOwn ? this.#hiddenWithTime : this.#hiddenNames
    if (ms < minKernelMs) {
      this.#flush(batch, open)
      const time = hasOwn ? this.#hiddenTimestamp : undefined
      this.#writeObject(batch.eventAt(at), stream, new Timestamp(ms, ns), undefined, time, open)
      return
    }
    if (run.isFull || hidden !== run.hidden) this.#flush(batch, open)
    run.hidden = hidden
    run.add(at, line, ms, ns, stream)
    // The bytes that its labels add to the request are known only when the entry is marked.
    if (stream.header.length > longHeaderBytes) this.#flush(batch, open)
  }

  /** Writes the entries of the run. */
  #flush(batch: ByteBatch, open: OpenRequest): void {
    const run = this.#run
    if (run.count === 0) return
    const { body } = open
    const ends = this.#ends
    const { lineFields: fields = allFields } = this.#options.format
    run.sort()
    const { count, ms, ns } = run
    let done = 0
    while (done < count) {
      const start = body.length
      const written = batch.writeEntries(run, done, run.hidden, fields, entryTail, body, ends)
      if (written > 0) {
        markRun(open, run, done, written, start, ends)
        done += written
        continue
      }
      // This single entry is larger than the kernel's buffer.
      const instant = new Timestamp(ms[done] as number, ns[done] as number)
      const time = run.hidden === this.#hiddenWithTime ? this.#hiddenTimestamp : undefined
      const stream = run.streams[run.streamAt(done)] as Stream
      this.#writeObject(batch.eventAt(run.placeOf(done)), stream, instant, undefined, time, open)
      done++
    }
    run.clear()
  }

  /** False if the event is not sent. */
  #writeEntry(event: LogEvent, stream: Stream, open: OpenRequest): boolean {
    const { metadata } = this.#options
    const own = this.#time.ofEvent(event)
    const instant = this.#instantFor(own ?? this.#supplied.next(stream), stream)
    if (instant === undefined) return false
    let pairs: ReadonlyMap<string, string> | undefined
    if (metadata !== undefined) {
      const key = metadata.key(event, this.#missing)
      if (key.length > maxKeyLength) {
        encoderFailed(this.#context, 'its structured metadata is too long')
        return false
      }
      pairs = metadata.fromKey(key, this.#faults)
    }
    // A value that is not a time cannot be sent beside the line, so it stays in the line.
    const hidden = own === undefined ? undefined : this.#hiddenTimestamp
    return this.#writeObject(event, stream, instant, pairs, hidden, open)
  }

  #writeObject(
    event: LogEvent,
    stream: Stream,
    instant: Timestamp,
    metadata: ReadonlyMap<string, string> | undefined,
    hidden: string | undefined,
    open: OpenRequest,
  ): boolean {
    const { format, removed } = this.#options
    const start = writeWithout(event, instant, metadata, format, open.body, hidden, removed)
    if (typeof start === 'string') {
      encoderFailed(this.#context, start)
      return false
    }
    markEntry(open, start, stream, instant.ms, instant.ns)
    return true
  }

  /** The timestamp of the entry; undefined if the event is discarded. */
  #instantFor(instant: Timestamp, stream: Stream): Timestamp | undefined {
    const { ms, ns } = instant
    if (ms > lastInstantMs || ms < -lastInstantMs) {
      this.#faults.tooFarAway()
      return undefined
    }
    if (ms > stream.latestMs || (ms === stream.latestMs && ns >= stream.latestNs)) return instant
    const { lateAction } = this.#options
    if (lateAction === 'accept') return instant
    if (lateAction === 'drop') {
      this.#faults.late()
      return undefined
    }
    this.#faults.rewritten()
    return new Timestamp(stream.latestMs, stream.latestNs)
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
    // Forgetting a stream only resets its lateness check.
    this.#streams.set(id, stream)
    this.#context.events.count('streams_total')
    return stream
  }
}
