// Lines of a container runtime that stay bytes, and their origin. While a source passes them on, their bytes are those of the chunk
// that it has read. A component that keeps some of them longer makes the source keep a copy.

import { joinedKey } from '../event/joined-key.ts'
import type { EventMetadata, LogEvent } from '../event/log.ts'
import { memberSize } from '../event/size.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField, type Value } from '../event/value.ts'
import { isFailedJson, jsonFloat, parseJson, writeJson } from '../formats/json.ts'
import { BlockPool } from './blocks.ts'
import type { Form } from './form.ts'
import { type Kernel, theKernel } from './kernel.ts'
import type { KeyTable } from './key-table.ts'
import { type LinePart, type OriginField, Plan } from './plan.ts'
import { ReadObjects } from './read-objects.ts'

/** The data that the lines of a file share. They never change: if a file's facts change, it gets another object. */
export class LineOrigin {
  readonly fields: readonly OriginField[]
  readonly metadata: EventMetadata
  readonly keys: KeyTable
  readonly #eventOf: LineOrigin['eventOf']
  readonly #plans = new WeakMap<Form, Plan>()

  /** @param eventOf makes the event of a line, which is whole and in the usual form */
  constructor(
    fields: readonly OriginField[],
    metadata: EventMetadata,
    keys: KeyTable,
    eventOf: (bytes: Buffer, start: number, end: number) => LogEvent,
  ) {
    this.fields = fields
    this.metadata = metadata
    this.keys = keys
    this.#eventOf = eventOf
  }

  has(name: string): boolean {
    return this.fields.some((field) => field.name === name)
  }

  /** The part of a line that is a field; undefined if it is the same in all lines, or if there is none. */
  partOf(name: string): LinePart | undefined {
    for (const field of this.fields) if (field.name === name) return 'part' in field ? field.part : undefined
    return undefined
  }

  eventOf(bytes: Buffer, start: number, end: number): LogEvent {
    return this.#eventOf(bytes, start, end)
  }

  plan(kernel: Kernel, form: Form): Plan {
    let plan = this.#plans.get(form)
    if (plan === undefined) {
      plan = new Plan(kernel, this.keys, this.fields, form)
      this.#plans.set(form, plan)
    }
    return plan
  }
}

/** Of all lines in the thread. */
const blocks = new BlockPool()

/** Members of one name. */
interface NamedValues {
  /** By line, the first one with the same value; -1 if it has no such member. */
  readonly groups: Int32Array
  /** By line, the number of the member. */
  readonly members: Int32Array
  /** By that first line; made when they are asked for. */
  readonly values: (Value | undefined)[]
}

/** Where sources that read the same lines leave what the kernel has read, one for all. */
export interface ObjectsPlace {
  readonly result: unknown
  readonly isWanted: boolean
  leave(objects: ReadObjects): boolean
}

/** Times of lines, by line. */
export interface LineTimes {
  readonly ms: Float64Array
  readonly ns: Int32Array
}

/** The data that the lines of one group share. */
export interface LineLikeness {
  /** Members of the objects in messages. */
  readonly members: readonly string[]
  readonly stream: boolean
  /** The second of their times. */
  readonly second: boolean
}

export class ByteLines {
  readonly origin: LineOrigin
  readonly count: number
  readonly #isAscii: boolean
  #bytes: Buffer | undefined
  #starts: Int32Array
  #ends: Int32Array
  #hasOdd = true
  /** Batches that may still need the bytes. */
  #holders = 0
  /** Members that were asked for, by their names, which come from a configuration. */
  #values: Map<string, NamedValues> | undefined
  /** By the likeness that was asked for, which comes from a configuration. */
  #groups: Map<string, Int32Array> | undefined
  #times: LineTimes | undefined

  /** As long as the bytes are those of the chunk. */
  #place: ObjectsPlace | undefined
  #hasPlaces: boolean | undefined
  #isKept = false
  /** The kernel's results about the objects in messages before the lines had to wait. */
  #objects: ReadObjects | undefined
  /** Lines whose bytes the kernel must not take. */
  #excluded: readonly number[] = []

  /**
   * @param bytes and where the lines lie in them, which are the caller's again after `keep`
   * @param place of the same bytes, for others who read the same lines
   */
  constructor(
    origin: LineOrigin,
    bytes: Buffer,
    starts: Int32Array,
    ends: Int32Array,
    count: number,
    isAscii: boolean,
    place?: ObjectsPlace,
  ) {
    this.origin = origin
    this.count = count
    this.#place = place
    this.#bytes = bytes
    this.#starts = starts
    this.#ends = ends
    this.#isAscii = isAscii
  }

  /** Whether the kernel has room for lines between these places. */
  static fits(count: number, from: number, to: number): boolean {
    const kernel = theKernel()
    return count <= kernel.at('maxLines') && to - from <= kernel.at('maxInput')
  }

  /** Brings the lines into the kernel, if they are not there, and their beginnings are read. */
  enter(): Kernel {
    const kernel = theKernel()
    const { content } = kernel
    this.origin.keys.enter(kernel)
    if (content.lines === this) return kernel
    const bytes = this.#held()
    const { count } = this
    const from = this.#starts[0] as number
    const to = this.#ends[count - 1] as number
    const input = kernel.at('input')
    kernel.memory.set(bytes.subarray(from, to), input)
    kernel.memory[input + to - from] = 0x0a
    kernel.starts.set(this.#starts.length === count ? this.#starts : this.#starts.subarray(0, count))
    kernel.ends.set(this.#ends.length === count ? this.#ends : this.#ends.subarray(0, count))
    kernel.call.begin(this.#isAscii)
    content.lines = this
    content.isRead = false
    kernel.call.readLines(count, input - from)
    this.#markExcluded(kernel)
    return kernel
  }

  /** The same, and the objects in their messages are read. */
  enterRead(): Kernel {
    const kernel = this.enter()
    const { content } = kernel
    if (content.isRead) return kernel
    content.isRead = true
    const objects = this.#objects ?? this.#objectsOfOthers()
    if (objects !== undefined) {
      objects.enter(kernel)
      this.#hasOdd = objects.hasOdd
      return kernel
    }
    putIntoForm(kernel, kernel.call.readObjects(0, this.count))
    this.#hasOdd = kernel.call.hasFlag(kernel.at('isOdd'), this.count)
    this.origin.keys.learn(kernel)
    if (this.#place?.isWanted === true) {
      const read = this.#objectsIn(kernel)
      if (!this.#place.leave(read)) read.release()
    }
    return kernel
  }

  #objectsIn(kernel: Kernel): ReadObjects {
    return new ReadObjects(kernel, this.origin.keys, this.count, this.#hasOdd, blocks)
  }

  /** The objects in the same lines, if the kernel has read them for another pipeline that has the same names. */
  #objectsOfOthers(): ReadObjects | undefined {
    const result = this.#place?.result
    return result instanceof ReadObjects && result.keys === this.origin.keys ? result : undefined
  }

  /** Whether the object in the message of some line is not taken. They have been read. */
  get hasOdd(): boolean {
    return this.#hasOdd
  }

  /** Whether members have names that the kernel knows by their places alone: it cannot leave them out. */
  get hasPlaces(): boolean {
    this.#hasPlaces ??= hasPlaces(this.enterRead(), this.count)
    return this.#hasPlaces
  }

  /** Brings in what events of a form need. */
  enterFor(form: Form): Kernel {
    return form.parses ? this.enterRead() : this.enter()
  }

  /** A member of the object in the message of a line; undefined if there is none. */
  member(line: number, name: string): Value | undefined {
    const { groups, members, values } = this.#valuesOf(name)
    const group = groups[line] as number
    if (group < 0) return undefined
    let value = values[group]
    if (value === undefined) {
      value = this.#value(this.enterRead(), 4 * (members[group] as number))
      values[group] = value
    }
    return value
  }

  /** Whether the object in some message may have a member of this name. */
  mayHaveMember(name: string): boolean {
    const kernel = this.enterRead()
    return this.origin.keys.known(name) !== undefined || this.origin.keys.isFull(kernel)
  }

  /** By line, the first one that is alike; undefined if that is not known. */
  groups({ members, stream, second }: LineLikeness): Int32Array | undefined {
    const id = joinedKey([stream ? 'stream' : '', second ? 'second' : '', ...members])
    this.#groups ??= new Map()
    const known = this.#groups.get(id)
    if (known !== undefined) return known
    const kernel = members.length === 0 ? this.enter() : this.enterRead()
    const { count } = this
    const { call, joined } = kernel
    joined.fill(0, 0, count)
    for (const name of members) {
      if (this.origin.keys.known(name) !== undefined) {
        // The values are often asked for next.
        kernel.groups.set(this.#valuesOf(name).groups)
        call.join(kernel.at('byMember'), count)
      } else if (this.origin.keys.isFull(kernel)) return undefined
    }
    if (stream) call.join(kernel.at('byStream'), count)
    if (second) call.join(kernel.at('bySecond'), count)
    const groups = joined.slice(0, count)
    this.#groups.set(id, groups)
    return groups
  }

  /** By line, the first one with the same member of this name in its message; negative if it has none. */
  linesWith(name: string): Int32Array {
    return this.#valuesOf(name).groups
  }

  /** The times of lines that the kernel takes. */
  times(): LineTimes {
    if (this.#times === undefined) {
      const kernel = this.enter()
      kernel.call.readTimes(this.count)
      this.#times = { ms: kernel.timeMs.slice(0, this.count), ns: kernel.timeNs.slice(0, this.count) }
    }
    return this.#times
  }

  /** The values of one name in all lines. */
  #valuesOf(name: string): NamedValues {
    this.#values ??= new Map()
    let known = this.#values.get(name)
    if (known === undefined) {
      known = this.#groupedBy(name)
      this.#values.set(name, known)
    }
    return known
  }

  #groupedBy(name: string): NamedValues {
    const kernel = this.enterRead()
    const key = this.origin.keys.known(name)
    if (key === undefined) return this.#groupedByPlace(kernel, name)
    const { count } = this
    kernel.call.group(key, count)
    return { groups: kernel.groups.slice(0, count), members: kernel.grouped.slice(0, count), values: [] }
  }

  /** The same for a name that is not in the table, which may have had no room for it: the kernel then knows it by its place. */
  #groupedByPlace(kernel: Kernel, name: string): NamedValues {
    const { count } = this
    const groups = new Int32Array(count).fill(-1)
    const found = { groups, members: new Int32Array(count), values: [] }
    if (!this.origin.keys.isFull(kernel)) return found
    const { members, memory } = kernel
    const quoted = `"${name}"`
    for (let line = 0; line < count; line++) {
      const first = kernel.firsts[line] as number
      const end = first + (kernel.counts[line] as number)
      for (let member = first; member < end; member++) {
        const place = ~(members[4 * member] as number)
        if (place < 0 || memory.latin1Slice(place, place + quoted.length) !== quoted) continue
        groups[line] = line
        found.members[line] = member
      }
    }
    return found
  }

  #value(kernel: Kernel, member: number): Value {
    const { members, memory } = kernel
    const recoded = kernel.at('recoded')
    const from = members[member + 1] as number
    const to = members[member + 2] as number
    if (memory[from] === 0x22) {
      // An escape may have become another character than ASCII.
      const isAscii = this.#isAscii && from < recoded
      const text = isAscii ? memory.latin1Slice(from + 1, to - 1) : memory.utf8Slice(from + 1, to - 1)
      if (!text.includes('\\')) return text
    }
    const value = parseJson(memory.utf8Slice(from, to))
    // It is what the kernel has read, or what was written of a value.
    return isFailedJson(value) ? null : value
  }

  /** A field of the event of a line as the source makes it. */
  field(line: number, name: string): Value | undefined {
    const { fields } = this.origin
    for (let index = 0; index < fields.length; index++) {
      const field = fields[index] as OriginField
      if (field.name !== name) continue
      if ('value' in field) return field.value
      if (field.part !== 'time') return getField(this.event(line).fields, name)
      const { ms, ns } = this.times()
      return new Timestamp(ms[line] as number, ns[line] as number)
    }
    return undefined
  }

  /** The event of a line as the source makes it. */
  event(line: number): LogEvent {
    return this.origin.eventOf(this.#held(), this.#starts[line] as number, this.#ends[line] as number)
  }

  /** Bytes that are kept for as long as somebody needs one of the lines. */
  get heldBytes(): number {
    const bytes = (this.#ends[this.count - 1] as number) - (this.#starts[0] as number)
    return bytes + (this.#objects?.bytes ?? 0)
  }

  #held(): Buffer {
    if (this.#bytes === undefined) throw new Error('Lines were asked for after they had been given back.')
    return this.#bytes
  }

  hold(): void {
    this.#holders++
  }

  /** Removes one holder. Without holders, nothing may read the lines again. */
  release(): void {
    if (--this.#holders > 0) return
    const bytes = this.#bytes
    this.#bytes = undefined
    const { content } = theKernel()
    if (content.lines === this) content.lines = undefined
    if (this.#isKept && bytes !== undefined) blocks.give(bytes)
    this.#objects?.release()
    this.#objects = undefined
  }

  /** Leaves out lines whose bytes are not text: the kernel relies on that. */
  exclude(lines: readonly number[]): void {
    this.#excluded = lines
    this.#markExcluded(this.enter())
  }

  #markExcluded(kernel: Kernel): void {
    const isUnusual = kernel.at('isUnusual')
    for (const line of this.#excluded) kernel.flags[line] = (kernel.flags[line] as number) | isUnusual
  }

  /** Called before the memory of the lines is reused: bytes that are still needed are copied. */
  keep(): void {
    const bytes = this.#bytes
    if (bytes === undefined || this.#isKept) return
    const objects = this.#objectsOfOthers()
    this.#place = undefined
    if (this.#holders === 0) {
      this.#bytes = undefined
      return
    }
    const { count } = this
    const from = this.#starts[0] as number
    const length = (this.#ends[count - 1] as number) - from
    const block = blocks.take(length)
    block.set(bytes.subarray(from, from + length))
    this.#starts = this.#starts.slice(0, count)
    this.#ends = this.#ends.slice(0, count)
    for (let line = 0; line < count; line++) {
      this.#starts[line] = (this.#starts[line] as number) - from
      this.#ends[line] = (this.#ends[line] as number) - from
    }
    this.#bytes = block
    this.#isKept = true
    const kernel = theKernel()
    const { content } = kernel
    if (objects !== undefined) this.#objects = objects.retain()
    else if (content.lines === this && content.isRead) this.#objects = this.#objectsIn(kernel)
  }
}

function hasPlaces(kernel: Kernel, count: number): boolean {
  const { flags, firsts, counts, members } = kernel
  const isRefused = kernel.at('isUnusual') | kernel.at('isOdd')
  for (let line = 0; line < count; line++) {
    if (((flags[line] as number) & isRefused) !== 0) continue
    const first = 4 * (firsts[line] as number)
    const end = first + 4 * (counts[line] as number)
    for (let member = first; member < end; member += 4) if ((members[member] as number) < 0) return true
  }
  return false
}

/** Writes members in their final form, through their values: long floats, and objects with unsorted names. */
function putIntoForm(kernel: Kernel, count: number): void {
  const { members, memory, flags, recodes, totals } = kernel
  const isOdd = kernel.at('isOdd')
  const end = kernel.at('recoded') + kernel.at('maxInput')
  let at = kernel.at('recoded') + kernel.current('recodedLength')
  for (let index = 0; index < 2 * count; index += 2) {
    const line = recodes[index] as number
    if (((flags[line] as number) & isOdd) !== 0) continue
    const member = 4 * (recodes[index + 1] as number)
    const given = memory.utf8Slice(members[member + 1] as number, members[member + 2] as number)
    const written = floatForm(given) ?? valueForm(given)
    if (written === undefined || at + 3 * written.text.length > end) {
      flags[line] = (flags[line] as number) | isOdd
      continue
    }
    const length = memory.write(written.text, at)
    members[member + 1] = at
    members[member + 2] = at + length
    totals[line] = (totals[line] as number) + written.size - (members[member + 3] as number)
    members[member + 3] = written.size
    at += length
  }
  kernel.call.setRecodedLength(at - kernel.at('recoded'))
}

/** How a value is written, and its estimated size. */
interface WrittenValue {
  readonly text: string
  readonly size: number
}

/** Of a number with a fraction, which needs no reader of JSON: the kernel has read it. */
function floatForm(text: string): WrittenValue | undefined {
  if (!/^-?\d+\.\d+$/.test(text)) return undefined
  const value = Number(text)
  return Number.isInteger(value) ? undefined : { text: jsonFloat(value), size: 8 }
}

function valueForm(text: string): WrittenValue | undefined {
  const value = parseJson(text)
  return isFailedJson(value) ? undefined : { text: writeJson(value), size: memberSize('', value) - 4 }
}
