// The interface to the byte lane's kernel: one instance per thread, its memory, and the current content of that memory. Content may be
// replaced at any time: a caller that needs its lines again loads them again.

import { instantiate } from '../formats/assembly.ts'
import { kernelCode } from './kernel-code.ts'

interface Calls {
  begin(ascii: boolean): void
  setKeys(count: number, stamp: number, lacksNames: boolean): void
  setRecodedLength(length: number): void
  touch(from: number, to: number): number
  /** Returns whether times were changed into UTC, in place. */
  readLines(count: number, shift: number): number
  splitLines(chunk: number, from: number, length: number, maxBytes: number): number
  packLines(count: number): void
  unpackLines(count: number, shift: number): void
  hasFlag(flag: number, count: number): boolean
  readObjects(from: number, to: number): number
  findKey(from: number): number
  hasMember(key: number, count: number): boolean
  group(key: number, count: number): void
  alike(keyCount: number, byStream: boolean, bySecond: boolean, count: number): void
  listGroups(keyCount: number, count: number, maxBytes: number): number
  readTimes(count: number): void
  measure(from: number, to: number, outside: number, mode: number): number
  writeQuoted(line: number, outside: number, mode: number): number
  write(from: number, to: number, outside: number, mode: number, prefixLength: number, suffix: number): number
  writeEntries(first: number, count: number, outside: number, mode: number, tailLength: number): number
}

/** The owner of each part of the memory, who need not load it again. */
interface Content {
  /** The owner of the lines. */
  lines: object | undefined
  /** Whether the objects in their messages have been read. */
  isRead: boolean
  /** The owner of the names. */
  keys: object | undefined
  /** The owner of the plan, and the plan's version of the name order. */
  plan: object | undefined
  planVersion: number
  /** The owner of the columns. */
  columns: object | undefined
}

/** The function behind `toString`; for single fields, the indirection would cost as much as the work. */
type Memory = Buffer & { latin1Slice(from: number, to: number): string; utf8Slice(from: number, to: number): string }

export class Kernel {
  readonly call: Calls
  readonly memory: Memory
  readonly content: Content = {
    lines: undefined,
    isRead: false,
    keys: undefined,
    plan: undefined,
    planVersion: -1,
    columns: undefined,
  }
  readonly #constants: Readonly<Record<string, number>>
  readonly #exports: Readonly<Record<string, unknown>>
  // By line.
  readonly starts: Int32Array
  readonly ends: Int32Array
  readonly messages: Int32Array
  readonly flags: Int32Array
  /** Index of the first member of each line, and number of members. */
  readonly firsts: Int32Array
  readonly counts: Int32Array
  /** Estimated size of all members of a line, with their names. */
  readonly totals: Int32Array
  readonly sizes: Int32Array
  /** For the last grouped member: the first line with the same value, and the number of the member; negative if there is none. */
  readonly groups: Int32Array
  readonly grouped: Int32Array
  /** After a comparison of several members: for each line, the first equal line. */
  readonly joined: Int32Array
  /** The keys of those members. */
  readonly likeKeys: Int32Array
  /** Where the text of a group begins and ends in the output, by its first line. */
  readonly textStarts: Int32Array
  readonly textEnds: Int32Array
  readonly timeMs: Float64Array
  readonly timeNs: Int32Array
  /** Lines to be written as entries. */
  readonly selected: Int32Array
  /** Ends of the written events in `memory`. */
  readonly writtenEnds: Int32Array
  /** Pairs of a line and the number of a member that the caller must convert. */
  readonly recodes: Int32Array
  /** Four numbers per member: its key, the start and end of its value, and its estimated size. */
  readonly members: Int32Array
  /** Eight numbers per member that does not come from the message. */
  readonly outside: Int32Array
  readonly edited: Uint8Array
  /** Offsets within a chunk of the lines that were found last. */
  readonly splitStarts: Int32Array
  readonly splitEnds: Int32Array
  /** By column and line, the number of a value. */
  readonly columns: Int32Array
  /** Three numbers per value: its offset, its length, and its estimated size. */
  readonly values: Int32Array

  constructor() {
    const exports = instantiate<Calls & Readonly<Record<string, unknown>>>(Buffer.from(kernelCode, 'base64'))
    this.call = exports
    const { buffer } = exports['memory'] as { readonly buffer: ArrayBuffer }
    this.memory = Buffer.from(buffer) as Memory
    const constants: Record<string, number> = {}
    for (const [name, value] of Object.entries(exports)) {
      if (typeof value === 'object' && value !== null && 'value' in value) constants[name] = Number(value.value)
    }
    this.#constants = constants
    this.#exports = exports
    const ofLines = (name: string) => new Int32Array(buffer, this.at(name), this.at('maxLines'))
    this.starts = ofLines('starts')
    this.ends = ofLines('ends')
    this.messages = ofLines('messages')
    this.flags = ofLines('flags')
    this.firsts = ofLines('firsts')
    this.counts = ofLines('counts')
    this.totals = ofLines('totals')
    this.sizes = ofLines('sizes')
    this.groups = ofLines('groups')
    this.grouped = ofLines('grouped')
    this.joined = ofLines('joined')
    this.likeKeys = new Int32Array(buffer, this.at('likeKeys'), this.at('maxLikeKeys'))
    this.textStarts = ofLines('textStarts')
    this.textEnds = ofLines('textEnds')
    this.timeMs = new Float64Array(buffer, this.at('timeMs'), this.at('maxLines'))
    this.timeNs = ofLines('timeNs')
    this.selected = ofLines('selected')
    this.writtenEnds = ofLines('writtenEnds')
    this.recodes = new Int32Array(buffer, this.at('recodes'), 2 * this.at('maxRecodes'))
    this.members = new Int32Array(buffer, this.at('members'), 4 * this.at('maxMembers'))
    this.outside = new Int32Array(buffer, this.at('outside'), 8 * this.at('maxOutside'))
    this.edited = new Uint8Array(buffer, this.at('edited'), this.at('maxKeys'))
    this.splitStarts = ofLines('splitStarts')
    this.splitEnds = ofLines('splitEnds')
    this.columns = new Int32Array(buffer, this.at('columns'), this.at('maxColumns') * this.at('maxLines'))
    this.values = new Int32Array(buffer, this.at('values'), 3 * this.at('maxValues'))
    if (this.at('memoryEnd') > buffer.byteLength) throw new RangeError('The memory of the kernel is too small.')
  }

  /** A constant of the kernel: the offset or the capacity of a memory area. */
  at(name: string): number {
    const value = this.#constants[name]
    if (value === undefined) throw new TypeError(`The kernel has no constant ${name}.`)
    return value
  }

  /** Copies the input back to `[from, to)` of the buffer that it came from, so that its next reader finds what the kernel has changed. */
  putBack(buffer: Buffer, from: number, to: number): void {
    const input = this.at('input')
    buffer.set(this.memory.subarray(input, input + to - from), from)
  }

  /** Where a buffer begins in the memory of the kernel; undefined if it is elsewhere. */
  placeOf(bytes: Buffer): number | undefined {
    return bytes.buffer === this.memory.buffer ? bytes.byteOffset : undefined
  }

  /** Whether there was no room for some name since the current names were loaded, or before. */
  get lacksNames(): boolean {
    return this.current('lacksNames') !== 0
  }

  /** A number that the kernel changes. */
  current(name: 'keyCount' | 'lacksNames' | 'stamp' | 'recodedLength' | 'memberCount'): number {
    return (this.#exports[name] as { readonly value: number }).value
  }
}

let kernel: Kernel | undefined

/** Created on first use, so that agents that do not need it do not pay for it. */
export function theKernel(): Kernel {
  kernel ??= new Kernel()
  return kernel
}

/** The kernel if something has needed it. */
export function usedKernel(): Kernel | undefined {
  return kernel
}

/** Maximum number of bytes that the kernel writes before or after an event. */
export function maxAffix(): number {
  return theKernel().at('maxAffix')
}
