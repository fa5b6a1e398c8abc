// Bodies of push requests: entries grouped by stream, in timestamp order within each stream. Entries are written as events
// arrive. When the request is complete, they are copied stream by stream into the final body. The format is JSON, or protobuf
// for snappy.

import { ownBytes } from '../../bounded-map.ts'
import type { FieldSelection } from '../../bytes/form.ts'
import type { Encoder } from '../../codecs/encoding/encoder.ts'
import { type Assemble, OpenRequest } from '../../delivery/request.ts'
import { Body, type BodyPool } from '../../event/body.ts'
import { DeferredEvent } from '../../event/deferred.ts'
import type { LogEvent } from '../../event/log.ts'
import { Spares } from '../../event/spares.ts'
import type { Timestamp } from '../../event/timestamp.ts'
import { writeJsonStringOf } from '../../formats/json-bytes.ts'
import { countsIn, EntryRuns, positionsIn, runsOf, streamsIn } from './entry-runs.ts'
import type { LineRun } from './line-run.ts'

/** A stream: its labels in wire format, and the instant of its latest entry in a finished request. */
export class Stream {
  /** The text before the entries of the stream in a body. */
  readonly header: Buffer
  latestMs = Number.NEGATIVE_INFINITY
  latestNs = 0
  /** Number of the last run that included this stream, and the stream's index there. */
  run = 0
  place = 0
  /** The last request with an entry of this stream, and the stream's number there. */
  request: OpenRequest | undefined
  number = 0

  constructor(header: Buffer) {
    this.header = header
  }

  /** Records the instant of a pushed entry. */
  pushed(ms: number, ns: number): void {
    if (ms < this.latestMs || (ms === this.latestMs && ns <= this.latestNs)) return
    this.latestMs = ms
    this.latestNs = ns
  }
}

/** Columns with a number for each entry, and the streams of the entries. */
interface Columns {
  ms: Float64Array
  ns: Uint32Array
  readonly runs: EntryRuns
}

/** State of an open request besides its bytes. */
interface Entries {
  readonly streams: Stream[]
  readonly numbers: Map<Stream, number>
  readonly columns: Columns
  /** Instant of the last entry of each stream, and whether none of them is before the one that precedes it in its stream. */
  readonly lastMs: number[]
  readonly lastNs: number[]
  isOrdered: boolean
}

/** State of a finished request, needed to cut parts from it. */
interface Finished {
  readonly streams: readonly Stream[]
  /** In the order of the body: a stream, and the number of its entries. */
  readonly counts: readonly number[]
}

/** The wire format of streams and entries. */
export interface PushFormat {
  readonly contentType: string
  /** The fields of entries in the format of the byte lane's kernel; undefined if the formats differ. */
  readonly lineFields: FieldSelection | undefined
  header(labels: ReadonlyMap<string, string>): Buffer
  /** Writes one entry and returns its start; or returns the encoder's problem and writes nothing. */
  entry(
    event: LogEvent,
    instant: Timestamp,
    metadata: ReadonlyMap<string, string> | undefined,
    body: Body,
  ): number | string
  /** Writes runs of entries, those of a stream together: `[first, last, stream]`, three numbers for each run. */
  write(from: Source, streams: readonly Stream[], runs: Uint32Array, into: OpenRequest): void
}

/** The entries of a request, and their bytes. */
type Source = Parameters<Assemble>[0]

/** Puts chosen entries of a request together again. */
export function assembleStreams(format: PushFormat): Assemble {
  return (from, positions, into) => {
    const { streams, counts } = from.state as Finished
    write(format, from, streams, runsOf(positions, streamsIn(counts)), into)
  }
}

function write(
  format: PushFormat,
  from: Source,
  streams: readonly Stream[],
  runs: Uint32Array,
  into: OpenRequest,
): void {
  const finished: Finished = { streams, counts: countsIn(runs) }
  into.state = finished
  format.write(from, streams, runs, into)
}

/**
 * Columns of finished requests, for reuse. Their memory is outside the heap, and V8 would start a collection of the
 * whole heap if many requests allocated it.
 */
const spares = new Spares<Columns>(4)

/** Smaller columns are not kept, and a small request gets new ones, so that it never holds large ones. */
const minSpare = 1 << 10
/** Maximum number of entries for which columns are kept. */
const maxSpare = 1 << 14

function takeColumns(room: number): Columns {
  const kept = room < minSpare ? undefined : spares.take()
  if (kept !== undefined && kept.ms.length >= room) return kept
  return { ms: new Float64Array(room), ns: new Uint32Array(room), runs: new EntryRuns() }
}

function giveColumns(columns: Columns): void {
  const { length } = columns.ms
  if (length < minSpare || length > maxSpare) return
  columns.runs.clear()
  spares.give(columns)
}

function entriesOf(request: OpenRequest): Entries {
  let entries = request.state as Entries | undefined
  if (entries === undefined) {
    // The request knows its typical number of events.
    const columns = takeColumns(request.ends.length)
    entries = { streams: [], numbers: new Map(), columns, lastMs: [], lastNs: [], isOrdered: true }
    request.state = entries
  }
  return entries
}

/** Marks the bytes written since `start` as an entry of a stream, with its instant. */
export function markEntry(request: OpenRequest, start: number, stream: Stream, ms: number, ns: number): void {
  const entries = entriesOf(request)
  const at = request.count
  request.mark(start)
  const { columns } = entries
  makeRoom(columns, at + 1)
  const number = stream.request === request ? stream.number : numberOf(request, entries, stream)
  columns.ms[at] = ms
  columns.ns[at] = ns
  const lastMs = entries.lastMs[number] as number
  if (ms < lastMs || (ms === lastMs && ns < (entries.lastNs[number] as number))) entries.isOrdered = false
  entries.lastMs[number] = ms
  entries.lastNs[number] = ns
  columns.runs.add(at, at, number)
}

/**
 * Marks the bytes written since `start` as entries of a run, from its entry `first` on: each begins with a comma, and ends at its place
 * in `ends`.
 */
export function markRun(
  request: OpenRequest,
  run: LineRun,
  first: number,
  count: number,
  start: number,
  ends: Int32Array,
): void {
  const entries = entriesOf(request)
  const shift = request.count - first
  request.markEach(start + 1, ends, count, 0, 1, 0)
  const { columns, lastMs, lastNs } = entries
  makeRoom(columns, request.count)
  const { ms, ns, runs } = columns
  const { ms: runMs, ns: runNs, streams } = run
  const end = first + count
  let index = first
  for (let place = run.streamAt(first); index < end; place++) {
    const stream = streams[place] as Stream
    const number = stream.request === request ? stream.number : numberOf(request, entries, stream)
    const last = Math.min(run.endOf(place), end) - 1
    runs.add(index + shift, last + shift, number)
    let beforeMs = lastMs[number] as number
    let beforeNs = lastNs[number] as number
    for (; index <= last; index++) {
      const nextMs = runMs[index] as number
      const nextNs = runNs[index] as number
      if (nextMs < beforeMs || (nextMs === beforeMs && nextNs < beforeNs)) entries.isOrdered = false
      ms[index + shift] = nextMs
      ns[index + shift] = nextNs
      beforeMs = nextMs
      beforeNs = nextNs
    }
    lastMs[number] = beforeMs
    lastNs[number] = beforeNs
  }
}

function numberOf(request: OpenRequest, entries: Entries, stream: Stream): number {
  let number = entries.numbers.get(stream)
  if (number === undefined) {
    number = entries.streams.push(stream) - 1
    entries.lastMs.push(Number.NEGATIVE_INFINITY)
    entries.lastNs.push(0)
    entries.numbers.set(stream, number)
    request.bytesToCome += stream.header.length
  }
  stream.request = request
  stream.number = number
  return number
}

function makeRoom(columns: Columns, count: number): void {
  if (count <= columns.ms.length) return
  const room = Math.max(count, 2 * columns.ms.length)
  columns.ms = doubled(columns.ms, new Float64Array(room))
  columns.ns = doubled(columns.ns, new Uint32Array(room))
}

function doubled<A extends Uint32Array | Float64Array>(from: A, into: A): A {
  into.set(from)
  return into
}

/** Puts the entries in their final order; returns the request to send. */
export function finishStreams(request: OpenRequest, pool: BodyPool, format: PushFormat): OpenRequest {
  const entries = entriesOf(request)
  const { streams, columns, lastMs, lastNs, isOrdered } = entries
  const { count } = request
  // Streams outlive the request, so the reference must be cleared.
  for (const stream of streams) if (stream.request === request) stream.request = undefined
  let order: () => Uint32Array
  let sorted: Uint32Array
  if (isOrdered) {
    const runs = columns.runs.byStream(streams.length)
    sorted = runs
    order = () => positionsIn(runs, count)
    for (const [number, stream] of streams.entries()) {
      stream.pushed(lastMs[number] as number, lastNs[number] as number)
    }
  } else {
    const streamOf = columns.runs.streams(count)
    const positions = finalOrder(entries, streamOf)
    order = () => positions
    sorted = runsOf(positions, streamOf)
  }
  const finished = new OpenRequest(request.key, pool.take(), request.owners.ordered(order), count)
  finished.bytes = request.bytes
  const { starts, ends, state } = request
  write(format, { source: request.body.view(), starts, ends, state }, streams, sorted, finished)
  pool.give(request.body)
  request.forgetPositions()
  giveColumns(columns)
  return finished
}

/** Positions of the entries by stream, then by time; equal times keep their order. Updates the latest instant of each stream. */
function finalOrder({ streams, columns }: Entries, streamOf: Uint32Array): Uint32Array {
  const { ms, ns } = columns
  const count = streamOf.length
  const order = new Uint32Array(count)
  const next = new Uint32Array(streams.length + 1)
  for (let at = 0; at < count; at++) {
    const after = (streamOf[at] as number) + 1
    next[after] = (next[after] as number) + 1
  }
  for (let stream = 1; stream <= streams.length; stream++) {
    next[stream] = (next[stream] as number) + (next[stream - 1] as number)
  }
  const bounds = next.slice()
  for (let at = 0; at < count; at++) {
    const stream = streamOf[at] as number
    const place = next[stream] as number
    order[place] = at
    next[stream] = place + 1
  }
  const compare = (left: number, right: number) =>
    (ms[left] as number) - (ms[right] as number) || (ns[left] as number) - (ns[right] as number) || left - right
  for (let stream = 0; stream < streams.length; stream++) {
    const from = bounds[stream] as number
    const to = bounds[stream + 1] as number
    for (let place = from + 1; place < to; place++) {
      if (compare(order[place - 1] as number, order[place] as number) > 0) {
        order.subarray(from, to).sort(compare)
        break
      }
    }
    if (to > from) {
      const latest = order[to - 1] as number
      ;(streams[stream] as Stream).pushed(ms[latest] as number, ns[latest] as number)
    }
  }
  return order
}

/** Copies consecutive entries of the source, with the bytes between them, and marks them. */
function copyRun(from: Source, first: number, last: number, into: OpenRequest): void {
  const { source, starts, ends } = from
  const { body } = into
  const begin = starts[first] as number
  const end = ends[last] as number
  body.reserve(end - begin)
  source.copy(body.buffer, body.length, begin, end)
  const shift = body.length - begin
  into.markMoved(starts, ends, first, last, shift)
  body.length += end - begin
}

/** `,["`, the nanoseconds since the epoch, and `",`. */
function writeOpening(instant: Timestamp, body: Body): void {
  const { ms, ns } = instant
  if (ms <= 0) {
    body.writeText(`,["${instant.toNanosecondText()}",`)
    return
  }
  // Writes the digits from the end, because creating a short-lived text for each entry costs more.
  body.reserve(32)
  const { buffer, length } = body
  const digits = ms < 1e12 || ms >= 1e13 ? String(ms).length : 13
  const end = length + 3 + digits + 6
  let at = end
  let rest = ns
  for (let digit = 0; digit < 6; digit++) {
    const next = (rest / 10) | 0
    buffer[--at] = 0x30 + rest - next * 10
    rest = next
  }
  // Seven digits fit in a small integer.
  let high = Math.floor(ms / 1e7)
  rest = ms - high * 1e7
  for (let digit = 0; digit < digits; digit++) {
    if (digit === 7) {
      rest = high
      high = 0
    }
    const next = (rest / 10) | 0
    buffer[--at] = 0x30 + rest - next * 10
    rest = next
  }
  buffer[length] = 0x2c
  buffer[length + 1] = 0x5b
  buffer[length + 2] = 0x22
  buffer[end] = 0x22
  buffer[end + 1] = 0x2c
  body.length = end + 2
}

/** The JSON format. Each source entry starts with a comma, so that a run of entries is one copy. */
export function jsonFormat(encoder: Encoder): PushFormat {
  const line = new Body(1 << 16)
  const { lineFields } = encoder
  return {
    contentType: 'application/json',
    lineFields,
    header: (labels) => ownBytes(`{"stream":${JSON.stringify(Object.fromEntries(labels))},"values":[`),
    entry(event, instant, metadata, body) {
      const before = body.length
      const start = before + 1
      writeOpening(instant, body)
      const isWritten =
        lineFields !== undefined && event instanceof DeferredEvent && event.writeChosen(body, lineFields, true)
      if (!isWritten) {
        line.length = 0
        const problem = encoder.encode(event, line)
        if (problem !== undefined) {
          body.truncate(before)
          return problem
        }
        writeJsonStringOf(line, body)
      }
      if (metadata !== undefined) body.writeText(`,${JSON.stringify(Object.fromEntries(metadata))}`)
      body.writeByte(0x5d)
      return start
    },
    write(from, streams, runs, into) {
      const { body } = into
      body.writeText('{"streams":[')
      let current = -1
      for (let run = 0; run < runs.length; run += 3) {
        const stream = runs[run + 2] as number
        if (stream !== current) {
          if (current >= 0) body.writeText(']},')
          body.writeBytes((streams[stream] as Stream).header)
          current = stream
        } else {
          body.writeByte(0x2c)
        }
        copyRun(from, runs[run] as number, runs[run + 1] as number, into)
      }
      body.writeText(']}]}')
    },
  }
}

/** The protobuf form: `PushRequest{streams=1}`, `Stream{labels=1, entries=2}`, `Entry{timestamp=1, line=2, metadata=3}`. */
export function protobufFormat(encoder: Encoder): PushFormat {
  const fields = new Body(1 << 16)
  return {
    contentType: 'application/x-protobuf',
    lineFields: undefined,
    header(labels) {
      const pairs = [...labels].map(([name, value]) => `${name}=${quoted(value)}`)
      const text = Buffer.from(`{${pairs.join(', ')}}`, 'utf8')
      const body = new Body(1 + varintLength(text.length) + text.length)
      writeField(body, 0x0a, text)
      return body.view()
    },
    entry(event, instant, metadata, body) {
      fields.length = 0
      const problem = encoder.encode(event, fields)
      if (problem !== undefined) return problem
      const start = body.length
      const lineLength = fields.length
      const seconds = Math.floor(instant.ms / 1000)
      const nanos = (instant.ms - seconds * 1000) * 1_000_000 + instant.ns
      const instantLength =
        (seconds === 0 ? 0 : 1 + signedLength(seconds)) + (nanos === 0 ? 0 : 1 + varintLength(nanos))
      let length = 1 + varintLength(instantLength) + instantLength + 1 + varintLength(lineLength) + lineLength
      const pairs = metadata === undefined ? [] : [...metadata].map(metadataField)
      for (const pair of pairs) length += 1 + varintLength(pair.length) + pair.length
      body.reserve(length + 8)
      body.writeByte(0x12)
      writeVarint(body, length)
      body.writeByte(0x0a)
      writeVarint(body, instantLength)
      if (seconds !== 0) {
        body.writeByte(0x08)
        writeSigned(body, seconds)
      }
      if (nanos !== 0) {
        body.writeByte(0x10)
        writeVarint(body, nanos)
      }
      writeField(body, 0x12, fields.buffer, lineLength)
      for (const pair of pairs) writeField(body, 0x1a, pair)
      return start
    },
    write(from, streams, runs, into) {
      const { starts, ends } = from
      for (let run = 0; run < runs.length; ) {
        const stream = runs[run + 2] as number
        const { header } = streams[stream] as Stream
        let length = header.length
        let after = run
        while (after < runs.length && runs[after + 2] === stream) {
          length += (ends[runs[after + 1] as number] as number) - (starts[runs[after] as number] as number)
          after += 3
        }
        into.body.writeByte(0x0a)
        writeVarint(into.body, length)
        into.body.writeBytes(header)
        for (; run < after; run += 3) {
          copyRun(from, runs[run] as number, runs[run + 1] as number, into)
        }
      }
    },
  }
}

function metadataField([name, value]: readonly [string, string]): Buffer {
  const body = new Body(64)
  writeField(body, 0x0a, Buffer.from(name, 'utf8'))
  writeField(body, 0x12, Buffer.from(value, 'utf8'))
  return Buffer.from(body.view())
}

function writeField(body: Body, tag: number, content: Buffer, length = content.length): void {
  body.writeByte(tag)
  writeVarint(body, length)
  body.reserve(length)
  content.copy(body.buffer, body.length, 0, length)
  body.length += length
}

/** Size of a non-negative varint. */
function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++
  return length
}

function signedLength(value: number): number {
  return value < 0 ? 10 : varintLength(value)
}

function writeVarint(body: Body, value: number): void {
  let rest = value
  while (rest >= 128) {
    body.writeByte((rest % 128) | 0x80)
    rest = Math.floor(rest / 128)
  }
  body.writeByte(rest)
}

/** Negative integers are 64 bits in two's complement. */
function writeSigned(body: Body, value: number): void {
  if (value >= 0) {
    writeVarint(body, value)
    return
  }
  let rest = BigInt.asUintN(64, BigInt(value))
  for (; rest >= 128n; rest >>= 7n) body.writeByte(Number(rest & 127n) | 0x80)
  body.writeByte(Number(rest))
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}

/** A quoted text in the syntax of the destination's query language. */
function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that need escapes
  const escaped = text.replace(/["\\\x00-\x1f\x7f]/g, (character) => {
    const short = shortEscapes[character]
    return short ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
  return `"${escaped}"`
}
