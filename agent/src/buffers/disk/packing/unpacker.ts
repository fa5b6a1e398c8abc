// Unpacks events. Each string is a slice of its block's text, so one call decodes the strings of many events.

import type { OriginField } from '../../../bytes/plan.ts'
import { fitsStored, type LineKind, type StoredLines } from '../../../bytes/stored-lines.ts'
import { LogEvent, noMetadata } from '../../../event/log.ts'
import { MetricEvent, type MetricTags, type MetricValue, type TagValue } from '../../../event/metric.ts'
import { Timestamp } from '../../../event/timestamp.ts'
import { Bytes, Float, Regex, setField, type Value, type ValueObject } from '../../../event/value.ts'
import { viewOf } from './record-memory.ts'
import { type ShapeUnpacker, same as sameMember, shapeUnpacker } from './shape-unpacker.ts'
import { fieldParts, kindFlags, tag as tags, utf8Text } from './tags.ts'

// Constants of this module are compiled into the machine code of its loops; imported constants are loaded each time.
const tag = tags
const same: typeof sameMember = sameMember

/** Counts read records: each record defines its shapes again. */
let records = 0

/** Lines during reading: see `StoredLines`. */
interface OpenLines {
  readonly kind: LineKind
  readonly bytes: Buffer
  readonly starts: number[]
  readonly ends: number[]
  readonly items: number[]
  readonly objects: LogEvent[]
}

/** Unpacks the events of one record after another. */
export class Unpacker {
  #bytes: Buffer = Buffer.alloc(0)
  #view: DataView = viewOf(this.#bytes)
  #at = 0
  #textAt = 0
  #text = ''
  #unit = 0
  #record = 0
  #shapes: ShapeUnpacker[] = []
  #kinds: LineKind[] = []

  /**
   * The events in order: objects, and lines with objects among them, valid as long as the bytes. @param textAt offset of
   * the blocks of text
   */
  logs(bytes: Buffer, textAt: number, count: number): (LogEvent[] | StoredLines)[] {
    this.#begin(bytes, textAt)
    const parts: (LogEvent[] | StoredLines)[] = []
    let open: LogEvent[] | OpenLines | undefined
    for (let left = count; left > 0; ) {
      const mark = this.#mark()
      const part = open
      if (mark === tag.lines) {
        const [lines, more] = this.#lines(part)
        open = lines
        left -= more
      } else {
        const fields = this.value() as ValueObject
        const event = mark === tag.described ? new LogEvent(fields, this.#metadata()) : new LogEvent(fields)
        open ??= []
        if (Array.isArray(open)) open.push(event)
        else open.items.push(-open.objects.push(event))
        left--
      }
      if (open !== part) parts.push(open)
    }
    this.#end()
    return parts
  }

  /** Reads lines and adds them to the previous part if both have the same kind; returns their number. */
  #lines(before: LogEvent[] | OpenLines | undefined): readonly [OpenLines, number] {
    const number = this.#unsigned()
    if (number === this.#kinds.length) this.#kinds.push(this.#kind())
    const kind = this.#kinds[number] as LineKind
    const count = this.#unsigned()
    const lengths = Array.from({ length: count }, () => this.#unsigned())
    const end = lengths.reduce((at, length) => at + length + 1, this.#at)
    const joins =
      before !== undefined &&
      !Array.isArray(before) &&
      before.kind === kind &&
      fitsStored(before.starts.length + count, before.starts[0] as number, end)
    const lines = joins ? before : { kind, bytes: this.#bytes, starts: [], ends: [], items: [], objects: [] }
    for (const length of lengths) {
      lines.items.push(lines.starts.length)
      lines.starts.push(this.#at)
      lines.ends.push(this.#at + length)
      this.#at += length + 1
    }
    return [lines, count]
  }

  #kind(): LineKind {
    const flags = this.#unsigned()
    const fields = Array.from({ length: this.#unsigned() }, (): OriginField => {
      const name = this.value() as string
      const part = fieldParts[this.#unsigned()] as (typeof fieldParts)[number]
      return part === 'value' ? { name, value: this.value() as Value } : { name, part }
    })
    const metadata = (flags & kindFlags.described) === 0 ? noMetadata : this.#metadata()
    const members = new Map<string, Value | undefined>()
    for (let left = this.#unsigned(); left > 0; left--) members.set(this.value() as string, this.value())
    const has = (flag: number) => (flags & flag) !== 0
    return { fields, metadata, parses: has(kindFlags.parses), merges: has(kindFlags.merges), members }
  }

  metrics(bytes: Buffer, textAt: number, count: number): MetricEvent[] {
    this.#begin(bytes, textAt)
    const events = new Array<MetricEvent>(count)
    for (let index = 0; index < count; index++) events[index] = this.#metric()
    this.#end()
    return events
  }

  #begin(bytes: Buffer, textAt: number): void {
    this.#end() // an earlier record may not have been read to its end
    this.#bytes = bytes
    this.#view = viewOf(bytes)
    this.#at = 0
    this.#textAt = textAt
    this.#record = ++records
    if (textAt < bytes.length) this.#nextBlock()
  }

  #end(): void {
    for (const shape of this.#shapes) shape.members.forget()
    this.#shapes = []
    this.#kinds = []
    this.#text = ''
  }

  /** Kind of the next entries: an event or lines. */
  #mark(): number {
    let mark = this.#bytes[this.#at++]
    if (mark === tag.block) {
      this.#nextBlock()
      mark = this.#bytes[this.#at++]
    }
    return mark as number
  }

  #metadata() {
    return { value: this.value() as ValueObject, secrets: this.value() as unknown as Record<string, string> }
  }

  #metric(): MetricEvent {
    const described = this.#mark() === tag.described
    const name = this.value() as string
    const namespace = this.value() as string | undefined
    const kind = this.value() === true ? 'absolute' : 'incremental'
    const timestamp = this.value() as unknown as Timestamp | undefined
    const intervalMs = this.value() as number | undefined
    const count = this.#unsigned()
    let tags: MetricTags | undefined
    if (count > 0) {
      tags = new Map()
      for (let index = 1; index < count; index++) tags.set(this.value() as string, this.value() as TagValue)
    }
    const value = this.#metricValue()
    const metadata = described ? this.#metadata() : noMetadata
    return new MetricEvent({ name, namespace, kind, timestamp, intervalMs, tags, value, metadata })
  }

  #metricValue(): MetricValue {
    const type = this.value() as MetricValue['type']
    switch (type) {
      case 'counter':
      case 'gauge':
        return { type, value: this.#double() }
      case 'set':
        return { type, values: this.value() as string[] }
      case 'distribution': {
        const statistic = this.value() as 'histogram' | 'summary'
        return { type, statistic, samples: this.#pairs((value, rate) => ({ value, rate })) }
      }
      case 'histogram': {
        const [count, sum] = [this.#double(), this.#double()]
        return { type, count, sum, buckets: this.#pairs((upperLimit, inside) => ({ upperLimit, count: inside })) }
      }
      case 'summary': {
        const [count, sum] = [this.#double(), this.#double()]
        return { type, count, sum, quantiles: this.#pairs((quantile, value) => ({ quantile, value })) }
      }
    }
  }

  #pairs<T>(of: (first: number, second: number) => T): T[] {
    return Array.from({ length: this.#unsigned() }, () => of(this.#double(), this.#double()))
  }

  /** A member of an object: a value, or `same`. Called by generated code. */
  member(): Value | typeof same | undefined {
    if (this.#bytes[this.#at] !== tag.same) return this.value()
    this.#at++
    return same
  }

  value(): Value | undefined {
    const kind = this.#bytes[this.#at++] as number
    if (kind >= tag.shortText) return this.#units(kind - tag.shortText)
    switch (kind) {
      case tag.absent:
        return undefined
      case tag.null:
        return null
      case tag.false:
        return false
      case tag.true:
        return true
      case tag.small:
        return this.#unsigned()
      case tag.integer:
      case tag.float:
        return this.#double()
      case tag.boxed:
        return new Float(this.#double())
      case tag.big:
        this.#at += 8
        return this.#view.getBigInt64(this.#at - 8, true)
      case tag.huge:
        return BigInt(this.value() as string)
      case tag.text:
        return this.#units(this.#unsigned())
      case tag.bytes: {
        const length = this.#unsigned()
        this.#at += length
        return new Bytes(Buffer.from(this.#bytes.subarray(this.#at - length, this.#at)))
      }
      case tag.timestamp:
        this.#at += 12
        return new Timestamp(this.#view.getFloat64(this.#at - 12, true), this.#view.getUint32(this.#at - 4, true))
      case tag.regex: {
        const [source, pattern, flags] = [this.value(), this.value(), this.value()] as [string, string, string]
        return new Regex(source, new RegExp(pattern, flags))
      }
      case tag.array: {
        const items = new Array<Value>(this.#unsigned())
        for (let index = 0; index < items.length; index++) items[index] = this.value() as Value
        return items
      }
      case tag.object: {
        const shape = this.#shapes[this.#unsigned()] as ShapeUnpacker
        return shape.members.unpack(this)
      }
      case tag.shape:
        return this.#defined().members.unpack(this)
      case tag.plain: {
        const fields: ValueObject = {}
        for (let left = this.#unsigned(); left > 0; left--) setField(fields, this.value() as string, this.value())
        return fields
      }
      default:
        throw new RangeError(`A record contains the unknown tag ${kind}.`)
    }
  }

  #defined(): ShapeUnpacker {
    const names = Array.from({ length: this.#unsigned() }, () => this.value() as string)
    const shape = shapeUnpacker(names, this.#record)
    this.#shapes.push(shape)
    return shape
  }

  #units(length: number): string {
    this.#unit += length
    return this.#text.substring(this.#unit - length, this.#unit)
  }

  #double(): number {
    this.#at += 8
    return this.#view.getFloat64(this.#at - 8, true)
  }

  #unsigned(): number {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes[this.#at++] as number
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value >>> 0
    }
  }

  #nextBlock(): void {
    const start = this.#textAt + 5
    const end = start + this.#bytes.readUInt32LE(this.#textAt + 1)
    const utf8 = this.#bytes[this.#textAt] === utf8Text
    this.#text = this.#bytes.toString(utf8 ? 'utf8' : 'utf16le', start, end)
    this.#unit = 0
    this.#textAt = end
  }
}
