// Events as bytes and back, exactly: every value comes back as it was, 64-bit integers, boxed floats, bytes, nanoseconds and
// metadata. Packed objects need no others: names of members are written once for each shape, a member that is the same
// as in the object before is one byte, and text is collected so that one call writes and one reads the strings of many events.
// The format is described in FORMAT.md; a change of it needs another `recordFormat`.

import { LogEvent, noMetadata } from '../../event/log.ts'
import { MetricEvent, type MetricTags, type MetricValue, type TagValue } from '../../event/metric.ts'
import { type Shape, shapeOf } from '../../event/shape.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { Bytes, Float, Regex, setField, type Value, type ValueObject } from '../../event/value.ts'

const tag = {
  absent: 0,
  null: 1,
  false: 2,
  true: 3,
  /** A non-negative integer below 2^31, as a varint. */
  small: 4,
  /** Any other number that is an integer, as a double, which is exact. */
  integer: 5,
  /** A number with a fraction. */
  float: 6,
  /** A `Float`. */
  boxed: 7,
  /** A bigint of 64 bits. */
  big: 8,
  /** A bigint of more, as decimal text. */
  huge: 9,
  text: 10,
  bytes: 11,
  timestamp: 12,
  regex: 13,
  array: 14,
  /** An object of a shape that was seen before, by number. */
  object: 15,
  /** An object that defines the next shape: the names, then the members. */
  shape: 16,
  /** An object with the name before each member. */
  plain: 17,
  /** The value of the same member of the last object of this shape. */
  same: 18,
  /** Before an event: the text that follows is in the next block. */
  block: 19,
  event: 20,
  /** An event with metadata. */
  described: 21,
  /** Texts of up to 191 UTF-16 units: the tag contains the length. */
  shortText: 64,
} as const
const longestShort = 255 - tag.shortText
/** Most bytes of a tag and a length behind it. */
const headBytes = 6

/** UTF-16 units after which a new block of text begins: a string that outlives its event keeps no more than its block. */
const blockUnits = 8192
const utf8Text = 0
const utf16Text = 1
const replacement = Buffer.from('\u{fffd}')

type PackMembers = (fields: ValueObject, packer: Packer) => void

/** How objects of a shape are packed within one record. */
interface ShapePacker {
  record: number
  id: number
  readonly reset: () => void
  readonly pack: PackMembers
}

/** Distinguishes records, those that are packed and those that are read: what was said in one is not said in the next. */
let records = 0

function shapePacker(shape: Shape): ShapePacker {
  const packer = { record: 0, id: 0, ...compilePack(shape.names) }
  shape.packer = packer
  return packer
}

/** Objects of a shape in a record after which a member that was never the same is taken for one that never is, */
const oftenEnough = 16
/** and is not compared in so many records: comparing long texts costs more than packing them. */
const recordsUnlike = 15

// What was last is noted when the member has been packed: objects of the shape may be nested in each other, and whoever reads
// knows the member only then. Nothing is compared before the first object of a record is packed, instead of with a value that
// stands for nothing: comparing only strings with strings is what makes it cheap.
function compilePack(names: readonly string[]): { pack: PackMembers; reset: () => void } {
  const each = names.map(
    (name, index) => `value = fields[${JSON.stringify(name)}]
if (compares_${index} && value === last_${index}) {
  values[at++] = ${tag.same}
  same_${index} = true
} else {
  if (typeof value === 'string') {
    if (value.length <= ${longestShort}) values[at++] = ${tag.shortText} + value.length
    else at = packer.longText(at, value.length)
    packer.collect(value)
  } else {
    packer.at = at
    packer.value(value)
    packer.room(${names.length - index} * ${headBytes})
    values = packer.values
    at = packer.at
  }
  if (unlike_${index} === 0) last_${index} = value
}`,
  )
  const variables = names.map(
    (_, index) => `let last_${index}, compares_${index} = false, same_${index} = false, unlike_${index} = 0\n`,
  )
  const begun = names.map((_, index) => `compares_${index} = unlike_${index} === 0\n`)
  const resets = names.map(
    (_, index) => `if (unlike_${index} > 0) unlike_${index}--
else if (packed >= ${oftenEnough} && !same_${index}) unlike_${index} = ${recordsUnlike}
same_${index} = compares_${index} = false
last_${index} = undefined`,
  )
  const body = `let packed = 0\n${variables.join('')}return {
pack(fields, packer) {
packer.room(${names.length} * ${headBytes})
let values = packer.values, at = packer.at, value
${each.join('\n')}
packer.at = at
if (packed++ === 0) { ${begun.join('')} } },
reset() {
${resets.join('\n')}
packed = 0 } }`
  return new Function(body)() as { pack: PackMembers; reset: () => void }
}

/** The bytes of a record: its values, and behind them its text. */
export interface PackedRecord {
  readonly values: Buffer
  readonly texts: Buffer
}

const none = Buffer.alloc(0)
const defaultValues = 1 << 17
const defaultTexts = 1 << 18
/** Memory of records that are done with, for the next ones of all buffers: new memory costs as much as packing into it. */
const spares: PackedRecord[] = []
const maxSpares = 12
const largestSpare = 1 << 20

/** The bytes of this record are not used any more. */
export function recycle({ values, texts }: PackedRecord): void {
  const [whole, wholeTexts] = [Buffer.from(values.buffer), Buffer.from(texts.buffer)]
  if (spares.length === maxSpares || whole.length + wholeTexts.length > largestSpare) return
  spares.push({ values: whole, texts: wholeTexts })
}

/** Packs the events of one record after the other. */
export class Packer {
  // Open to generated code, as are `room`, `longText`, `collect` and `value`.
  /** Values, of which so many bytes are there; blocks of text lie behind them. There are none between records. */
  values: Buffer = none
  #view: DataView = viewOf(none)
  at = 0
  #texts: Buffer = none
  #textAt = 0
  /** Text of the block that is being filled. */
  #text = ''
  #units = 0
  /** A block was announced. */
  #announced = false
  #record = 0
  #shapes = 0
  #events = 0

  /** A new record begins. */
  begin(): void {
    const { values, texts } = spares.pop() ?? {
      values: Buffer.allocUnsafeSlow(defaultValues),
      texts: Buffer.allocUnsafeSlow(defaultTexts),
    }
    this.values = values
    this.#view = viewOf(values)
    this.#texts = texts
    this.#record = ++records
    this.at = 0
    this.#textAt = 0
    this.#text = ''
    this.#units = 0
    this.#announced = false
    this.#shapes = 0
    this.#events = 0
  }

  /** Bytes so far, about. */
  get size(): number {
    return this.at + this.#textAt + this.#units
  }

  get events(): number {
    return this.#events
  }

  /** Closes the record and gives it away; who has it calls `recycle` when it is done with. */
  finish(): PackedRecord {
    if (this.#units > 0 || this.#announced) this.#closeBlock()
    const packed = { values: this.values.subarray(0, this.at), texts: this.#texts.subarray(0, this.#textAt) }
    this.values = none
    this.#texts = none
    return packed
  }

  log(event: LogEvent): void {
    const described = event.metadata !== noMetadata
    this.#begin(described)
    this.#object(event.fields, event.shape)
    if (described) this.#metadata(event)
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
    this.room(2)
    if (this.#units >= blockUnits) {
      this.#closeBlock()
      this.values[this.at++] = tag.block
      this.#announced = true
    }
    this.values[this.at++] = described ? tag.described : tag.event
  }

  #metadata({ metadata }: LogEvent | MetricEvent): void {
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
    if (length <= longestShort) this.values[this.at++] = tag.shortText + length
    else this.at = this.longText(this.at, length)
    this.collect(text)
  }

  /** What stands for a long text, at a place for which there is room; gives where it ends. */
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
      packer.record = this.#record
      packer.id = this.#shapes++
      packer.reset()
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

  // A block: how its text is encoded, its length in bytes, the text.
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
    // UTF-8 has no place for half of a surrogate pair, which JSON can bring about: a replacement character is there instead.
    // To look for that is cheaper than to ask the text, which would be copied into one piece first.
    const isReplaced = length !== units && this.#texts.subarray(start, start + length).includes(replacement)
    const utf8 = !isReplaced || text.isWellFormed()
    if (!utf8) length = this.#texts.write(text, start, 'utf16le')
    this.#texts[this.#textAt] = utf8 ? utf8Text : utf16Text
    this.#texts.writeUInt32LE(length, this.#textAt + 1)
    this.#textAt = start + length
  }
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
}

function grown(buffer: Buffer, used: number, needed: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.max(needed, buffer.length * 2))
  buffer.copy(larger, 0, 0, used)
  return larger
}

type UnpackMembers = (unpacker: Unpacker) => ValueObject

/** How objects of a shape are made again; kept, because the shapes of one record are those of the next. */
interface ShapeUnpacker {
  seen: number
  unpack: UnpackMembers
}

/** Shapes of the same names: objects whose members were made in another order are another shape, with last values of its own. */
interface Namesakes {
  readonly shapes: ShapeUnpacker[]
  /** How many of them a record has defined, and which it was. */
  defined: number
  record: number
}

const unpackers = new Map<string, Namesakes>()
let unpackersKept = 0
/** Records with objects of a shape for which generated code is worth its while. */
const worthIt = 8
const maxUnpackers = 128
const same = Symbol('same')

/** Members one by one, for shapes that are rare. */
function slowly(names: readonly string[]): UnpackMembers {
  const last = new Array<Value | undefined>(names.length)
  return (unpacker) => {
    const fields: ValueObject = {}
    for (let index = 0; index < names.length; index++) {
      const value = unpacker.member()
      if (value !== same) last[index] = value as Value | undefined
      setField(fields, names[index] as string, last[index])
    }
    return fields
  }
}

function compileUnpack(names: readonly string[]): UnpackMembers {
  const reads = names.map(
    (_, index) => `let value_${index} = unpacker.member()
if (value_${index} === same) value_${index} = last_${index}; else last_${index} = value_${index}`,
  )
  // In brackets, because a bare `__proto__` would be the prototype.
  const members = names.map((name, index) => `[${JSON.stringify(name)}]: value_${index}`)
  const lasts = names.map((_, index) => `last_${index}`)
  const body = `${lasts.length === 0 ? '' : `let ${lasts.join(', ')}\n`}return (unpacker) => {
${reads.join('\n')}
return { ${members.join(', ')} } }`
  return new Function('same', body)(same) as UnpackMembers
}

/** Brings back the events of one record after the other. */
export class Unpacker {
  #bytes: Buffer = Buffer.alloc(0)
  #view: DataView = viewOf(this.#bytes)
  #at = 0
  #textAt = 0
  #text = ''
  #unit = 0
  #record = 0
  #shapes: ShapeUnpacker[] = []

  /** @param textAt where in the bytes the blocks of text begin */
  logs(bytes: Buffer, textAt: number, count: number): LogEvent[] {
    this.#begin(bytes, textAt)
    const events = new Array<LogEvent>(count)
    for (let index = 0; index < count; index++) {
      const described = this.#event()
      const fields = this.value() as ValueObject
      events[index] = described ? new LogEvent(fields, this.#metadata()) : new LogEvent(fields)
    }
    return events
  }

  metrics(bytes: Buffer, textAt: number, count: number): MetricEvent[] {
    this.#begin(bytes, textAt)
    const events = new Array<MetricEvent>(count)
    for (let index = 0; index < count; index++) events[index] = this.#metric()
    return events
  }

  #begin(bytes: Buffer, textAt: number): void {
    this.#bytes = bytes
    this.#view = viewOf(bytes)
    this.#at = 0
    this.#textAt = textAt
    this.#record = ++records
    this.#shapes = []
    if (textAt < bytes.length) this.#nextBlock()
  }

  #event(): boolean {
    let mark = this.#bytes[this.#at++]
    if (mark === tag.block) {
      this.#nextBlock()
      mark = this.#bytes[this.#at++]
    }
    return mark === tag.described
  }

  #metadata() {
    return { value: this.value() as ValueObject, secrets: this.value() as unknown as Record<string, string> }
  }

  #metric(): MetricEvent {
    const described = this.#event()
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
        return shape.unpack(this)
      }
      case tag.shape:
        return this.#defined().unpack(this)
      case tag.plain: {
        const fields: ValueObject = {}
        for (let left = this.#unsigned(); left > 0; left--) setField(fields, this.value() as string, this.value())
        return fields
      }
      default:
        throw new RangeError(`A record holds the unknown tag ${kind}.`)
    }
  }

  #defined(): ShapeUnpacker {
    const names = Array.from({ length: this.#unsigned() }, () => this.value() as string)
    const namesakes = this.#namesakes(JSON.stringify(names))
    const index = namesakes.defined++
    let shape = namesakes.shapes[index]
    if (shape === undefined) {
      shape = { seen: 0, unpack: slowly(names) }
      namesakes.shapes.push(shape)
      unpackersKept++
    }
    if (++shape.seen === worthIt) shape.unpack = compileUnpack(names)
    this.#shapes.push(shape)
    return shape
  }

  #namesakes(key: string): Namesakes {
    if (unpackersKept >= maxUnpackers) {
      unpackers.clear()
      unpackersKept = 0
    }
    let found = unpackers.get(key)
    if (found === undefined) {
      found = { shapes: [], defined: 0, record: this.#record }
      unpackers.set(key, found)
    } else if (found.record !== this.#record) {
      found.record = this.#record
      found.defined = 0
    }
    return found
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
