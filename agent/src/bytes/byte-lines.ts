// Container runtime lines that stay bytes, and their origin. While the source passes them on, their bytes are in the chunk that it
// has read. If a component keeps lines longer, the source makes a copy.

import { joinedKey } from '../event/joined-key.ts'
import type { LogEvent } from '../event/log.ts'
import { memberSize } from '../event/size.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField, type Value } from '../event/value.ts'
import { isFailedJson, jsonFloat, parseJson, writeJson } from '../formats/json.ts'
import { BlockPool } from './blocks.ts'
import type { Form } from './form.ts'
import { GroupTexts } from './group-texts.ts'
import { type Kernel, theKernel } from './kernel.ts'
import type { LineOrigin } from './line-origin.ts'
import type { OriginField } from './plan.ts'
import { ReadObjects } from './read-objects.ts'
import type { ResultPlace } from './shared-result.ts'

/** Shared by all lines in the thread. */
const blocks = new BlockPool()

/** Message members of one name. */
interface NamedValues {
  /** For each line, the first line with the same value; -1 if it has no such member. */
  readonly groups: Int32Array
  /** For each line, the number of the member. */
  readonly members: Int32Array
  /** For each of these first lines, the value, created on request. */
  readonly values: (Value | undefined)[]
}

/** Times, by line. */
export interface LineTimes {
  readonly ms: Float64Array
  readonly ns: Int32Array
}

/** The facts shared by the lines of a group. */
export interface LineLikeness {
  /** Members of the message objects. */
  readonly members: readonly string[]
  readonly stream: boolean
  /** Whether the seconds of their times must be equal. */
  readonly second: boolean
}

/** Lines that wait keep at most this many times the bytes that a batch needs, or this many bytes. */
const maxHeldShare = 16
const minMuch = 4096

/** A batch of events that are lines. */
interface LineHolder {
  /** Called before the lines have to wait. A holder that needs few of them makes its events objects, and releases the lines. */
  settle(): void
}

interface LineGroups {
  /** For each line, the first equal line. */
  readonly firsts: Int32Array
  /** Undefined before the first request, or if a name is unknown. */
  texts: GroupTexts | undefined
}

export class ByteLines {
  readonly origin: LineOrigin
  readonly count: number
  readonly #isAscii: boolean
  #bytes: Buffer | undefined
  #starts: Int32Array
  #ends: Int32Array
  #hasOdd = true
  /** The batches that may still need the bytes. */
  readonly #holders = new Set<LineHolder>()
  /** Requested members, by their names, which come from a configuration. */
  #values: Map<string, NamedValues> | undefined
  /** Groups by requested likeness, which comes from a configuration. */
  #groups: Map<string, LineGroups> | undefined
  /** The most recently requested likeness, and its groups. */
  #last: { readonly likeness: LineLikeness; readonly groups: LineGroups | undefined } | undefined
  #times: LineTimes | undefined
  /** The most recently requested name, and whether some line may have such a member. */
  #asked: { readonly name: string; readonly mayHave: boolean } | undefined

  /** Set as long as the bytes are those of the chunk. */
  #place: ResultPlace | undefined
  #hasPlaces: boolean | undefined
  /** Returns the bytes to their owner; undefined if they may change before. */
  #giveBack: (() => void) | undefined
  /** The kernel's results about the message objects, from before the lines had to wait. */
  #objects: ReadObjects | undefined
  /** Lines that the kernel must not read. */
  #excluded: readonly number[] = []

  /**
   * @param bytes the lines' bytes, which belong to the caller again after `keep` @param place shares results with other
   * readers of the same bytes
   */
  constructor(
    origin: LineOrigin,
    bytes: Buffer,
    starts: Int32Array,
    ends: Int32Array,
    count: number,
    isAscii: boolean,
    place?: ResultPlace,
  ) {
    this.origin = origin
    this.count = count
    this.#place = place
    this.#bytes = bytes
    this.#starts = starts
    this.#ends = ends
    this.#isAscii = isAscii
  }

  /** Whether this range of lines fits in the kernel. */
  static fits(count: number, from: number, to: number): boolean {
    const kernel = theKernel()
    return count <= kernel.at('maxLines') && to - from <= kernel.at('maxInput')
  }

  /** Loads the lines into the kernel if needed, and reads their prefixes. */
  enter(): Kernel {
    const kernel = theKernel()
    const { content } = kernel
    this.origin.keys.enter(kernel)
    if (content.lines === this) return kernel
    const place = this.#enterBytes(kernel)
    const { count } = this
    kernel.call.begin(this.#isAscii)
    content.lines = this
    content.isRead = false
    if (this.#objects !== undefined) {
      this.#enterObjects(kernel, this.#objects, place)
      return kernel
    }
    kernel.starts.set(this.#starts.length === count ? this.#starts : this.#starts.subarray(0, count))
    kernel.ends.set(this.#ends.length === count ? this.#ends : this.#ends.subarray(0, count))
    const from = this.#starts[0] as number
    if (kernel.call.readLines(count, place - from) !== 0 && place === kernel.at('input'))
      kernel.putBack(this.#held(), from, this.#ends[count - 1] as number)
    this.#markExcluded(kernel)
    return kernel
  }

  /** Returns where the first line is in the kernel. */
  #enterBytes(kernel: Kernel): number {
    const bytes = this.#held()
    const from = this.#starts[0] as number
    const to = this.#ends[this.count - 1] as number
    const chunk = kernel.placeOf(bytes)
    if (chunk !== undefined) {
      if (this.#giveBack !== undefined) kernel.call.touch(chunk + from, chunk + to)
      return chunk + from
    }
    const input = kernel.at('input')
    kernel.memory.set(bytes.subarray(from, to), input)
    kernel.memory[input + to - from] = 0x0a
    return input
  }

  /** The same, and also reads the objects in their messages. */
  enterRead(): Kernel {
    const kernel = this.enter()
    const { content } = kernel
    if (content.isRead) return kernel
    const objects = this.#objectsOfOthers()
    if (objects !== undefined) {
      this.#enterObjects(kernel, objects, kernel.starts[0] as number)
      return kernel
    }
    content.isRead = true
    putIntoForm(kernel, kernel.call.readObjects(0, this.count))
    this.#hasOdd = kernel.call.hasFlag(kernel.at('isOdd'), this.count)
    this.origin.keys.learn(kernel, this.origin.owner)
    if (this.#place?.isWanted === true) {
      const read = this.#objectsIn(kernel)
      if (!this.#place.leave(read)) read.release()
    }
    return kernel
  }

  /** Restores the earlier results for the lines, whose bytes are in the kernel. */
  #enterObjects(kernel: Kernel, objects: ReadObjects, place: number): void {
    objects.enter(kernel, place)
    kernel.content.isRead = true
    this.#hasOdd = objects.hasOdd
  }

  #objectsIn(kernel: Kernel): ReadObjects {
    return new ReadObjects(kernel, this.origin.keys, this.count, this.#hasOdd, blocks)
  }

  /** The objects in the same lines, if the kernel has read them for another pipeline with the same names. */
  #objectsOfOthers(): ReadObjects | undefined {
    const result = this.#place?.result
    return result instanceof ReadObjects && result.keys === this.origin.keys ? result : undefined
  }

  /** Whether the kernel rejects some line's message. The objects must have been read. */
  get hasOdd(): boolean {
    return this.#hasOdd
  }

  /** Whether the kernel knows some member names only by their positions, so that it cannot omit these members. */
  get hasPlaces(): boolean {
    this.#hasPlaces ??= hasPlaces(this.enterRead(), this.count)
    return this.#hasPlaces
  }

  /** Loads the data that events of a form need. */
  enterFor(form: Form): Kernel {
    return form.parses ? this.enterRead() : this.enter()
  }

  /** A member of the object in a line's message; undefined if there is none. */
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

  /** Whether some message may have a member of this name. */
  mayHaveMember(name: string): boolean {
    if (this.#asked?.name === name) return this.#asked.mayHave
    const kernel = this.enterRead()
    const key = this.origin.keys.known(name)
    const mayHave = key === undefined ? this.origin.keys.lacksNames(kernel) : kernel.call.hasMember(key, this.count)
    this.#asked = { name, mayHave }
    return mayHave
  }

  /** For each line, the first equal line; undefined if that is unknown. */
  groups(likeness: LineLikeness): Int32Array | undefined {
    return this.#groupsBy(likeness)?.firsts
  }

  #groupsBy(likeness: LineLikeness): LineGroups | undefined {
    if (this.#last?.likeness !== likeness) this.#last = { likeness, groups: this.#anyGroupsBy(likeness) }
    return this.#last.groups
  }

  #anyGroupsBy({ members, stream, second }: LineLikeness): LineGroups | undefined {
    const id = joinedKey([stream ? 'stream' : '', second ? 'second' : '', ...members])
    this.#groups ??= new Map()
    const known = this.#groups.get(id)
    if (known !== undefined) return known
    const kernel = members.length === 0 ? this.enter() : this.enterRead()
    const keyCount = this.#enterNames(kernel, members)
    if (keyCount === undefined) return undefined
    const { count } = this
    kernel.call.alike(keyCount, stream, second, count)
    const groups = { firsts: kernel.joined.slice(0, count), texts: undefined }
    this.#groups.set(id, groups)
    return groups
  }

  /**
   * Text that identifies the group of a line among lines of one origin. Undefined if it is not known, if it is very long, or if the
   * second of the time matters.
   */
  likeText(line: number, likeness: LineLikeness): string | undefined {
    const { members, stream, second } = likeness
    const groups = second ? undefined : this.#groupsBy(likeness)
    if (groups === undefined) return undefined
    if (groups.texts === undefined) {
      const kernel = members.length === 0 ? this.enter() : this.enterRead()
      const keyCount = this.#enterNames(kernel, members)
      // No line has one of the names, or the kernel knows it only by its positions.
      if (keyCount === undefined || keyCount < members.length) return undefined
      groups.texts = new GroupTexts(kernel, groups.firsts, keyCount, stream)
    }
    return groups.texts.of(groups.firsts[line] as number)
  }

  /**
   * Copies the keys of the members to be compared into the kernel, except names that no line has. Returns their number; undefined if
   * the kernel cannot recognize one of the names, or if there are too many.
   */
  #enterNames(kernel: Kernel, names: readonly string[]): number | undefined {
    const { keys } = this.origin
    const { likeKeys } = kernel
    let count = 0
    for (let index = 0; index < names.length; index++) {
      const key = keys.known(names[index] as string)
      if (key === undefined) {
        if (keys.lacksNames(kernel)) return undefined
      } else if (count === likeKeys.length) return undefined
      else likeKeys[count++] = key
    }
    return count
  }

  /** For each line, the first line with the same message member of this name; negative if it has none. */
  linesWith(name: string): Int32Array {
    return this.#valuesOf(name).groups
  }

  /** The times of the lines that the kernel accepts. */
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

  /** The same for a name missing from the table, which may have had no room: the kernel then knows the name by its position. */
  #groupedByPlace(kernel: Kernel, name: string): NamedValues {
    const { count } = this
    const groups = new Int32Array(count).fill(-1)
    const found = { groups, members: new Int32Array(count), values: [] }
    if (!this.origin.keys.lacksNames(kernel)) return found
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
      // An escape may decode to a character outside ASCII.
      const isAscii = this.#isAscii && (from < recoded || from >= recoded + kernel.at('maxInput'))
      const text = isAscii ? memory.latin1Slice(from + 1, to - 1) : memory.utf8Slice(from + 1, to - 1)
      if (!text.includes('\\')) return text
    }
    const value = parseJson(memory.utf8Slice(from, to))
    // The text is the kernel's input or a serialised value, so it is valid JSON.
    return isFailedJson(value) ? null : value
  }

  /** A field of a line's event as the source creates it. */
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

  /** A line's event as the source creates it. */
  event(line: number): LogEvent {
    return this.origin.eventOf(this.#held(), this.#starts[line] as number, this.#ends[line] as number)
  }

  /** Bytes kept in memory as long as any of the lines is needed. */
  get heldBytes(): number {
    const bytes = (this.#ends[this.count - 1] as number) - (this.#starts[0] as number)
    return bytes + (this.#objects?.bytes ?? 0)
  }

  #held(): Buffer {
    if (this.#bytes === undefined) throw new Error('Lines were requested after their memory was released.')
    return this.#bytes
  }

  /** Whether the lines keep much more memory than some events need. @param lineOf returns a negative number for an object */
  isMuchFor(events: number, lineOf: (index: number) => number): boolean {
    const { heldBytes } = this
    if (heldBytes < minMuch) return false
    let left = heldBytes / maxHeldShare
    for (let index = 0; index < events && left >= 0; index++) {
      const line = lineOf(index)
      if (line >= 0) left -= (this.#ends[line] as number) - (this.#starts[line] as number)
    }
    return left >= 0
  }

  hold(holder: LineHolder): void {
    this.#holders.add(holder)
  }

  /** Removes a holder. When there are no more holders, the lines must not be read again. */
  release(holder: LineHolder): void {
    this.#holders.delete(holder)
    if (this.#holders.size > 0) return
    this.#bytes = undefined
    // A batch whose events are objects may still refer to the lines.
    this.#values = undefined
    this.#groups = undefined
    this.#last = undefined
    this.#times = undefined
    this.#leaveKernel()
    this.#giveBack?.()
    this.#giveBack = undefined
    this.#objects?.release()
    this.#objects = undefined
  }

  /** Excludes lines that are not valid text, which the kernel relies on. */
  exclude(lines: readonly number[]): void {
    this.#excluded = lines
    this.#markExcluded(this.enter())
  }

  #markExcluded(kernel: Kernel): void {
    const isUnusual = kernel.at('isUnusual')
    for (const line of this.#excluded) kernel.flags[line] = (kernel.flags[line] as number) | isUnusual
  }

  /**
   * Called before the memory of the lines is reused. Copies the bytes that are still needed.
   * @param lend lends the memory to the lines instead, and returns the function that gives it back; undefined if it cannot
   */
  keep(lend?: () => (() => void) | undefined): void {
    if (this.#giveBack !== undefined) return
    for (const holder of this.#holders) holder.settle()
    const bytes = this.#bytes
    if (bytes === undefined) return
    const objects = this.#objectsOfOthers()
    this.#place = undefined
    if (this.#holders.size === 0) {
      this.#bytes = undefined
      this.#leaveKernel()
      return
    }
    const kernel = theKernel()
    const { content } = kernel
    if (objects !== undefined) this.#objects = objects.retain()
    else if (content.lines === this && content.isRead) this.#objects = this.#objectsIn(kernel)
    this.#giveBack = lend?.()
    if (this.#giveBack === undefined) this.#copy(bytes)
  }

  #copy(bytes: Buffer): void {
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
    this.#giveBack = () => blocks.give(block)
    // The kernel may have read them in place.
    this.#leaveKernel()
  }

  #leaveKernel(): void {
    const { content } = theKernel()
    if (content.lines === this) content.lines = undefined
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

/** Converts members to their final form by parsing their values: long floats, and objects with unsorted names. */
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

/** The serialised value and its estimated size. */
interface WrittenValue {
  readonly text: string
  readonly size: number
}

/** The form of a number with a fraction: the kernel has validated it, so no JSON parser is needed. */
function floatForm(text: string): WrittenValue | undefined {
  if (!/^-?\d+\.\d+$/.test(text)) return undefined
  const value = Number(text)
  return Number.isInteger(value) ? undefined : { text: jsonFloat(value), size: 8 }
}

function valueForm(text: string): WrittenValue | undefined {
  const value = parseJson(text)
  return isFailedJson(value) ? undefined : { text: writeJson(value), size: memberSize('', value) - 4 }
}
