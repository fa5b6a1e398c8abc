// Packs events into bytes without loss, including 64-bit integers, boxed floats, bytes, nanoseconds and metadata. A record is
// self-contained. It stores member names once per shape, and a member equal to that of the previous object is one byte. It
// collects texts in blocks, so that one call writes or reads the strings of many events. FORMAT.md describes the format; every
// change to it needs a new `recordFormat`.

import type { ByteBatch } from '../../../bytes/byte-batch.ts'
import type { Form } from '../../../bytes/form.ts'
import type { LineOrigin } from '../../../bytes/line-origin.ts'
import { canStore, kindOf, type LineKind, storeLines } from '../../../bytes/stored-lines.ts'
import { Body } from '../../../event/body.ts'
import { type EventMetadata, type LogEvent, noMetadata } from '../../../event/log.ts'
import type { MetricEvent, MetricValue } from '../../../event/metric.ts'
import { type Shape, shapeOf } from '../../../event/shape.ts'
import { Timestamp } from '../../../event/timestamp.ts'
import { Bytes, Float, Regex, type Value, type ValueObject } from '../../../event/value.ts'
import { grown, type PackedRecord, recordMemory, viewOf } from './record-memory.ts'
import { resetPacker, type ShapePacker, shapePacker } from './shape-packer.ts'
import * as tags from './tags.ts'

// Constants of this module are compiled into the machine code of its loops; imported constants are loaded each time.
const { tag, fieldParts, kindFlags, headBytes, maxShortLength, blockUnits, utf8Text, utf16Text } = tags

const replacement = Buffer.from('\u{fffd}')
const none = Buffer.alloc(0)

/** Counts packed records: each record defines its shapes again. */
let records = 0

/** Packs the events of one record after another. */
export class Packer {
  // Accessible to generated code, like `room`, `longText`, `collect` and `value`.
  /** Values, with this many bytes in use; blocks of text follow them. Empty between records. */
  values: Buffer = none
  #view: DataView = viewOf(none)
  at = 0
  #texts: Buffer = none
  #textAt = 0
  /** Text of the current block. */
  #text = ''
  #units = 0
  /** Whether a block of text was announced. */
  #announced = false
  #record = 0
  /** The shapes that the record has defined, by their numbers. */
  #shapes: ShapePacker[] = []
  #events = 0
  /** Kinds of lines in this record, by their source and their changes by programs. */
  #kinds: { readonly origin: LineOrigin; readonly form: Form }[] = []
  readonly #lines = new Body(1 << 16)

  /** Starts a new record. */
  begin(): void {
    this.#forget() // the state of an earlier, unfinished record
    const { values, texts } = recordMemory()
    this.values = values
    this.#view = viewOf(values)
    this.#texts = texts
    this.#record = ++records
    this.at = 0
    this.#textAt = 0
    this.#text = ''
    this.#units = 0
    this.#announced = false
    this.#events = 0
  }

  /** Approximate number of bytes so far. */
  get size(): number {
    return this.at + this.#textAt + this.#units
  }

  get events(): number {
    return this.#events
  }

  /** Closes the record and returns it; its owner calls `recycle` when finished with it. */
  finish(): PackedRecord {
    if (this.#units > 0 || this.#announced) this.#closeBlock()
    const packed = { values: this.values.subarray(0, this.at), texts: this.#texts.subarray(0, this.#textAt) }
    this.values = none
    this.#texts = none
    this.#forget()
    return packed
  }

  /** Releases all references to events, because there are many shapes and a single value may be a megabyte. */
  #forget(): void {
    for (const packer of this.#shapes) {
      if (packer.record === this.#record) resetPacker(packer)
    }
    this.#shapes = []
    this.#kinds = []
  }

  log(event: LogEvent): void {
    const described = event.metadata !== noMetadata
    this.#begin(described)
    this.#object(event.fields, event.shape)
    if (described) this.#metadata(event)
  }

  /** Packs byte lines as lines, and the objects among them as objects. */
  lines(batch: ByteBatch): void {
    const { count } = batch
    let lengths: number[] = []
    const flush = () => {
      if (lengths.length > 0) this.#section(batch, lengths)
      this.#lines.truncate(0)
      lengths = []
    }
    const isStorable = canStore(batch)
    for (let index = 0; index < count; ) {
      const line = isStorable ? batch.lineOf(index) : -1
      let end = index + 1
      while (line >= 0 && end < count && batch.lineOf(end) === line + end - index) end++
      const stored = line < 0 ? 0 : storeLines(batch, line, end - index, this.#lines, lengths)
      if (stored === 0) {
        flush()
        this.log(batch.eventAt(index))
      }
      index += Math.max(stored, 1)
    }
    flush()
  }

  #section({ lines: { origin }, form }: ByteBatch, lengths: readonly number[]): void {
    this.#announce()
    this.#events += lengths.length
    this.room(headBytes)
    this.values[this.at++] = tag.lines
    const known = this.#kinds.findIndex((kind) => kind.origin === origin && kind.form === form)
    this.#unsigned(known < 0 ? this.#kinds.length : known)
    if (known < 0) {
      this.#kinds.push({ origin, form })
      this.#kind(kindOf(origin, form))
    }
    this.#unsigned(lengths.length)
    for (const length of lengths) this.#unsigned(length)
    const bytes = this.#lines.view()
    this.room(bytes.length)
    this.values.set(bytes, this.at)
    this.at += bytes.length
  }

  #kind({ fields, metadata, parses, merges, members }: LineKind): void {
    const described = metadata !== noMetadata
    this.#unsigned(
      (parses ? kindFlags.parses : 0) | (merges ? kindFlags.merges : 0) | (described ? kindFlags.described : 0),
    )
    this.#unsigned(fields.length)
    for (const field of fields) {
      this.text(field.name)
      this.#unsigned(fieldParts.indexOf('part' in field ? field.part : 'value'))
      if ('value' in field) this.value(field.value)
    }
    if (described) this.#described(metadata)
    this.#unsigned(members.size)
    for (const [name, value] of members) {
      this.text(name)
      this.value(value)
    }
  }

  metric(event: MetricEvent): void {
    const described = event.metadata !== noMetadata
    this.#begin(described)
    this.text(event.name)
    this.value(event.namespace)
    this.value(event.kind === 'absolute')
    this.value(event.timestamp)
    this.value(event.intervalMs)
    const { tags } = event
    this.#unsigned(tags === undefined ? 0 : tags.size + 1)
    if (tags !== undefined) {
      for (const [name, value] of tags) {
        this.text(name)
        this.value(value as Value)
      }
    }
    this.#metricValue(event.value)
    if (described) this.#metadata(event)
  }

  #begin(described: boolean): void {
    this.#events++
    this.#announce()
    this.values[this.at++] = described ? tag.described : tag.event
  }

  /** Announces a new block before the next value; there is room for its tag. */
  #announce(): void {
    this.room(2)
    if (this.#units >= blockUnits) {
      this.#closeBlock()
      this.values[this.at++] = tag.block
      this.#announced = true
    }
  }

  #metadata({ metadata }: LogEvent | MetricEvent): void {
    this.#described(metadata)
  }

  #described(metadata: EventMetadata): void {
    this.value(metadata.value)
    this.value(metadata.secrets as ValueObject)
  }

  #metricValue(value: MetricValue): void {
    this.text(value.type)
    switch (value.type) {
      case 'counter':
      case 'gauge':
        this.#double(value.value)
        return
      case 'set':
        this.value(value.values as string[])
        return
      case 'distribution':
        this.text(value.statistic)
        this.#unsigned(value.samples.length)
        for (const sample of value.samples) {
          this.#double(sample.value)
          this.#double(sample.rate)
        }
        return
      case 'histogram':
        this.#double(value.count)
        this.#double(value.sum)
        this.#unsigned(value.buckets.length)
        for (const bucket of value.buckets) {
          this.#double(bucket.upperLimit)
          this.#double(bucket.count)
        }
        return
      case 'summary':
        this.#double(value.count)
        this.#double(value.sum)
        this.#unsigned(value.quantiles.length)
        for (const quantile of value.quantiles) {
          this.#double(quantile.quantile)
          this.#double(quantile.value)
        }
    }
  }

  text(text: string): void {
    const { length } = text
    this.room(headBytes)
    if (length <= maxShortLength) this.values[this.at++] = tag.shortText + length
    else this.at = this.longText(this.at, length)
    this.collect(text)
  }

  /** Writes the tag and the length of a long text at an offset with enough room; returns the end. */
  longText(at: number, length: number): number {
    this.values[at] = tag.text
    this.at = at + 1
    this.#unsigned(length)
    return this.at
  }

  collect(text: string): void {
    this.#text += text
    this.#units += text.length
  }

  value(value: Value | undefined): void {
    if (this.at + 16 > this.values.length) this.room(16)
    switch (typeof value) {
      case 'string':
        this.text(value)
        return
      case 'number':
        this.#number(value)
        return
      case 'boolean':
        this.values[this.at++] = value ? tag.true : tag.false
        return
      case 'undefined':
        this.values[this.at++] = tag.absent
        return
      case 'bigint':
        this.#bigint(value)
        return
    }
    if (value === null) {
      this.values[this.at++] = tag.null
    } else if (Array.isArray(value)) {
      this.values[this.at++] = tag.array
      this.#unsigned(value.length)
      for (let index = 0; index < value.length; index++) this.value(value[index] as Value)
    } else if (value instanceof Timestamp) {
      this.values[this.at] = tag.timestamp
      this.#view.setFloat64(this.at + 1, value.ms, true)
      this.#view.setUint32(this.at + 9, value.ns, true)
      this.at += 13
    } else if (value instanceof Float) {
      this.values[this.at++] = tag.boxed
      this.#double(value.value)
    } else if (value instanceof Bytes) {
      this.values[this.at++] = tag.bytes
      this.#unsigned(value.bytes.length)
      this.room(value.bytes.length)
      this.values.set(value.bytes, this.at)
      this.at += value.bytes.length
    } else if (value instanceof Regex) {
      this.values[this.at++] = tag.regex
      this.text(value.source)
      this.text(value.compiled.source)
      this.text(value.compiled.flags)
    } else {
      this.#object(value, shapeOf(value))
    }
  }

  #object(fields: ValueObject, shape: Shape | null): void {
    if (shape === null) {
      this.#plain(fields)
      return
    }
    const packer = (shape.packer as ShapePacker | undefined) ?? shapePacker(shape)
    this.room(headBytes)
    if (packer.record === this.#record) {
      this.values[this.at++] = tag.object
      this.#unsigned(packer.id)
    } else {
      if (packer.record !== 0) resetPacker(packer) // another record is being made at the same time
      packer.record = this.#record
      packer.id = this.#shapes.push(packer) - 1
      this.values[this.at++] = tag.shape
      this.#unsigned(shape.names.length)
      for (const name of shape.names) this.text(name)
    }
    packer.pack(fields, this)
  }

  #plain(fields: ValueObject): void {
    let count = 0
    for (const name in fields) if (fields[name] !== undefined) count++
    this.room(headBytes)
    this.values[this.at++] = tag.plain
    this.#unsigned(count)
    for (const name in fields) {
      const value = fields[name]
      if (value === undefined) continue
      this.text(name)
      this.value(value)
    }
  }

  #number(value: number): void {
    if (value >= 0 && value <= 0x7fffffff && (value | 0) === value) {
      this.values[this.at++] = tag.small
      this.#unsigned(value)
    } else {
      this.values[this.at++] = Number.isInteger(value) ? tag.integer : tag.float
      this.#double(value)
    }
  }

  #bigint(value: bigint): void {
    if (BigInt.asIntN(64, value) === value) {
      this.values[this.at] = tag.big
      this.#view.setBigInt64(this.at + 1, value, true)
      this.at += 9
    } else {
      this.values[this.at++] = tag.huge
      this.text(String(value))
    }
  }

  #double(value: number): void {
    if (this.at + 8 > this.values.length) this.room(8)
    this.#view.setFloat64(this.at, value, true)
    this.at += 8
  }

  #unsigned(value: number): void {
    if (this.at + 5 > this.values.length) this.room(5)
    let rest = value
    while (rest > 0x7f) {
      this.values[this.at++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.values[this.at++] = rest
  }

  room(bytes: number): void {
    if (this.at + bytes <= this.values.length) return
    this.values = grown(this.values, this.at, this.at + bytes)
    this.#view = viewOf(this.values)
  }

  // A block: the encoding of its text, its length in bytes, the text.
  #closeBlock(): void {
    const text = this.#text
    this.#text = ''
    this.#announced = false
    const units = this.#units
    this.#units = 0
    if (this.#textAt + 5 + units * 3 > this.#texts.length) {
      this.#texts = grown(this.#texts, this.#textAt, this.#textAt + 5 + units * 3)
    }
    const start = this.#textAt + 5
    let length = this.#texts.write(text, start)
    // UTF-8 cannot encode half of a surrogate pair, which JSON may contain; a replacement character takes its place.
    // Searching for that character is cheaper than checking the text, which would first be copied into one piece.
    const isReplaced = length !== units && this.#texts.subarray(start, start + length).includes(replacement)
    const utf8 = !isReplaced || text.isWellFormed()
    if (!utf8) length = this.#texts.write(text, start, 'utf16le')
    this.#texts[this.#textAt] = utf8 ? utf8Text : utf16Text
    this.#texts.writeUInt32LE(length, this.#textAt + 1)
    this.#textAt = start + length
  }
}
