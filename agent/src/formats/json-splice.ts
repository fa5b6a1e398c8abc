// Writes the JSON of an event whose members come from a JSON text, without intermediate values. The text is read once to validate it
// and estimate its size, and again when it is written, so that the event needs no memory. Members already in encoded form are copied;
// only the others are converted through their values. `parseJson` handles texts that this reader rejects.

import { ownBytes } from '../bounded-map.ts'
import type { Body } from '../event/body.ts'
import { memberSize } from '../event/size.ts'
import { Timestamp } from '../event/timestamp.ts'
import { compareKeys, type Value, type ValueObject } from '../event/value.ts'
import { isFailedJson, parseJson, writeJson } from './json.ts'
import { isBlank } from './json-reader.ts'

/** Longer texts, texts with more members and deeper values are left to `parseJson`. */
const maxText = 16_384
const maxMembers = 64
const maxDepth = 64
/** Number of known keys. Texts with other keys are left to `parseJson`. */
const maxKeys = 1024
const maxKeyBytes = 128
const tableSize = 4 * maxKeys
const maxProbes = 8
/** Number of remembered key sequences, a power of two. */
const rememberedSequences = 64
/** Maximum number of members that edits set or remove. */
export const maxEdits = 16
/** Longer values are not cached. */
const maxKept = 65_536
/** Shorter runs are copied byte by byte, because calling the platform costs more. */
const shortRun = 96

/** The edits of a program after it has parsed the text. */
export interface SpliceEdits {
  /** Whether previous fields are kept unless the text has a member of that name. */
  readonly merges: boolean
  /** Members then set; undefined: removed. */
  readonly members: ReadonlyMap<string, Value | undefined>
}

interface Key {
  /** The name with a comma before and a colon after it. */
  readonly json: Uint8Array
  readonly name: string
  /** Number of keys known before it. */
  readonly id: number
  /** Its rank among all keys, in encoding order. */
  rank: number
  /** Whether an edit sets or removes the member, regardless of its old value. */
  readonly isEdited: boolean
  /** The last event whose text contained it. */
  event: number
  /** The last value from outside the text: most events of a batch share it. */
  value: Value | undefined
  valueSize: number
  valueJson: Uint8Array | undefined
}

/** The current text in UTF-8, followed by a zero. All splicers share it, so it is only valid during a call. */
const bytes = Buffer.allocUnsafeSlow(3 * maxText + 1) as Buffer & {
  utf8Write(text: string, at: number): number
  utf8Slice(from: number, to: number): string
  latin1Slice(from: number, to: number): string
}
let isAscii = true
/** Whether the last string read has escapes. */
let hadEscapes = false
/** Estimated size of the last number read; negative if encoding may change it. */
let numberSize = 0
/** Members in encoding order, and their ranks. */
const order = new Int32Array(2 * maxMembers)
const ranks = new Int32Array(2 * maxMembers)

/** Whether a splicer supports a member of this name. */
export function isPlainKey(name: string): boolean {
  return name.length <= maxKeyBytes && name !== '__proto__' && /^[ !#-[\]-~]*$/.test(name)
}

export class JsonSplicer {
  readonly #merges: boolean
  readonly #members: ReadonlyMap<string, Value | undefined>
  /** Members that edits set, and their added size. */
  readonly #set: Key[] = []
  readonly #setSize: number = 0
  /** By the hash of the name. */
  readonly #table = new Array<Key | undefined>(tableSize).fill(undefined)
  readonly #sorted: Key[] = []
  /** Names of the previous event's fields, in their last order, and their keys. */
  #names: string[] = []
  #nameKeys: Key[] = []
  #event = 0
  // The members of the last text read. Members from outside the text have no position in it.
  #count = 0
  readonly #keys: Key[] = []
  readonly #starts = new Int32Array(2 * maxMembers)
  readonly #ends = new Int32Array(2 * maxMembers)
  readonly #values: (Value | undefined)[] = []
  /** Size of the last member read. */
  #size = 0
  /** Hashes of the key sequences of the last text and of earlier texts. */
  #sequence = 0
  readonly #sequences = new Int32Array(rememberedSequences)
  /** Whether a recent text had the same keys in the same order as the last text passed to `sizeOf`. */
  isRepeated = false

  constructor({ merges, members }: SpliceEdits) {
    this.#merges = merges
    this.#members = members
    for (const [name, value] of members) {
      const key = this.#named(name)
      if (value === undefined || key === undefined) continue
      this.#set.push(key)
      this.#setSize += memberSize(name, value)
      this.#keep(key, value)
    }
  }

  /** Estimated size of the event with the text and these fields; negative if `parseJson` must read it. */
  sizeOf(text: string, before: ValueObject): number {
    const size = this.#read(text)
    if (size < 0) return size
    const place = (this.#sequence ^ (this.#sequence >>> 16)) & (rememberedSequences - 1)
    this.isRepeated = this.#sequences[place] === this.#sequence
    this.#sequences[place] = this.#sequence
    const outside = this.#merges ? this.#addFields(before) : 0
    return outside < 0 ? outside : size + outside + this.#setSize
  }

  /** Writes the event. `sizeOf` must have accepted the text and the fields. */
  write(text: string, before: ValueObject, body: Body): void {
    this.#read(text)
    if (this.#merges) this.#addFields(before)
    for (const key of this.#set) this.#add(key, this.#members.get(key.name))
    const count = this.#count
    const start = body.length
    this.#sort(count)
    for (let place = 0; place < count; place++) {
      const member = order[place] as number
      const key = this.#keys[member] as Key
      const from = this.#starts[member] as number
      const to = this.#ends[member] as number
      const { json } = key
      body.reserve(json.length + to - from + 64)
      const { buffer } = body
      let at = body.length
      for (let index = 0; index < json.length; index++) buffer[at + index] = json[index] as number
      at += json.length
      if (to === 0) {
        body.length = at
        this.#writeValue(key, this.#values[member] as Value, body)
        this.#values[member] = undefined // so that no value is kept alive
      } else {
        if (to - from > shortRun) bytes.copy(buffer, at, from, to)
        else for (let index = from; index < to; index++) buffer[at + index - from] = bytes[index] as number
        body.length = at + to - from
      }
    }
    if (count === 0) body.writeByte(0x7b)
    // The comma before the first member becomes the bracket.
    else body.buffer[start] = 0x7b
    body.writeByte(0x7d)
  }

  #writeValue(key: Key, value: Value, body: Body): void {
    if (value instanceof Timestamp) {
      const { buffer } = body // the size was reserved before
      buffer[body.length] = 0x22
      const end = value.writeTo(buffer, body.length + 1)
      buffer[end] = 0x22
      body.length = end + 1
    } else if (key.value === value) {
      key.valueJson ??= ownBytes(writeJson(value))
      body.writeBytes(key.valueJson)
    } else body.writeText(writeJson(value))
  }

  /** Sorts the members in encoding order. */
  #sort(count: number): void {
    for (let member = 0; member < count; member++) {
      const { rank } = this.#keys[member] as Key
      let place = member
      while (place > 0 && (ranks[place - 1] as number) > rank) {
        ranks[place] = ranks[place - 1] as number
        order[place] = order[place - 1] as number
        place--
      }
      ranks[place] = rank
      order[place] = member
    }
  }

  /** Adds the fields that the text does not override; returns their size. */
  #addFields(before: ValueObject): number {
    let size = 0
    let index = 0
    for (const name in before) {
      const value = before[name]
      if (this.#names[index] !== name && !this.#learn(name, index)) return -1
      const key = this.#nameKeys[index++] as Key
      if (value === undefined || key.isEdited || key.event === this.#event) continue
      if (value instanceof Timestamp) size += key.name.length + 30
      else {
        if (key.value !== value) this.#keep(key, value) // called each time for a value too long to be cached
        size += key.valueSize
      }
      if (this.#count >= 2 * maxMembers - maxEdits) return -1
      this.#add(key, value)
    }
    return size
  }

  #learn(name: string, index: number): boolean {
    const key = this.#named(name)
    if (key === undefined) return false
    for (const dropped of this.#nameKeys.splice(index)) {
      // Only values of the last event are kept, for any number of keys.
      if (dropped.isEdited) continue
      dropped.value = undefined
      dropped.valueJson = undefined
    }
    this.#names.length = index
    this.#names.push(name)
    this.#nameKeys.push(key)
    return true
  }

  #keep(key: Key, value: Value): void {
    key.valueSize = memberSize(key.name, value)
    key.value = key.valueSize > maxKept ? undefined : value
    key.valueJson = undefined
  }

  #add(key: Key, value: Value | undefined): void {
    const member = this.#count++
    this.#keys[member] = key
    this.#starts[member] = 0
    this.#ends[member] = 0
    this.#values[member] = value
  }

  /** Finds the members of the text; returns the size of their object, negative if the text is rejected. */
  #read(text: string): number {
    const { length } = text
    if (length > maxText) return -1
    const end = bytes.utf8Write(text, 0)
    // A lone surrogate was replaced by another character.
    if (end !== length && !text.isWellFormed()) return -1
    bytes[end] = 0 // ends every loop
    isAscii = end === length
    this.#event++
    this.#count = 0
    this.#sequence = 1
    let size = 2
    let at = afterBlanks(0)
    if (bytes[at] !== 0x7b) return -1
    at = afterBlanks(at + 1)
    if (bytes[at] === 0x7d) at++
    else {
      for (;;) {
        if (bytes[at] !== 0x22) return -1
        const key = this.#keyAt(at + 1)
        if (key === undefined || key.event === this.#event) return -1
        key.event = this.#event
        this.#sequence = Math.imul(this.#sequence ^ key.id, 0x01000193)
        at = afterBlanks(at + key.json.length - 2)
        if (bytes[at] !== 0x3a) return -1
        const from = afterBlanks(at + 1)
        const member = this.#count
        if (member === maxMembers) return -1
        at = this.#readValue(from, member)
        if (at < 0) return -1
        if (!key.isEdited) {
          this.#keys[member] = key
          this.#count++
          size += key.name.length + 4 + this.#size
        }
        at = afterBlanks(at)
        const next = bytes[at++]
        if (next === 0x7d) break
        if (next !== 0x2c) return -1
        at = afterBlanks(at)
      }
    }
    return afterBlanks(at) === end ? size : -1
  }

  /** Records the position of a value, or the value itself; returns its end, negative if it is rejected. */
  #readValue(from: number, member: number): number {
    const first = bytes[from] as number
    let end = -1
    let size = -1
    if (first === 0x22) {
      end = afterString(from)
      if (end < 0) return -1
      if (!hadEscapes) size = isAscii ? end - from : unitsOf(from, end)
    } else if (first === 0x2d || (first >= 0x30 && first <= 0x39)) {
      end = afterNumber(from)
      size = numberSize
    } else if (first === 0x74 || first === 0x66 || first === 0x6e) {
      end = afterWord(from, first)
      size = end - from
    } else if (first === 0x7b || first === 0x5b) end = afterNested(from)
    if (end < 0) return -1
    if (size < 0) {
      const value = parseJson(bytes.utf8Slice(from, end))
      if (isFailedJson(value)) return -1
      this.#values[member] = value
      this.#starts[member] = 0
      this.#ends[member] = 0
      this.#size = memberSize('', value) - 4
      return end
    }
    this.#starts[member] = from
    this.#ends[member] = end
    this.#size = size
    return end
  }

  /** The key whose first byte is at this position; undefined if it is not plain, or there are too many. */
  #keyAt(from: number): Key | undefined {
    let at = from
    let hash = 0
    for (let byte = bytes[at] as number; byte !== 0x22; byte = bytes[++at] as number) {
      if (byte < 0x20 || byte === 0x5c || byte > 0x7e) return undefined
      hash = Math.imul(hash ^ byte, 0x01000193)
    }
    const length = at - from
    if (length > maxKeyBytes) return undefined
    hash ^= hash >>> 15
    for (let probe = 0; probe < maxProbes; probe++) {
      const place = (hash + probe) & (tableSize - 1)
      const key = this.#table[place]
      if (key === undefined) return this.#addKey(bytes.latin1Slice(from, at), place)
      const { json } = key
      if (json.length !== length + 4) continue
      let index = 0
      while (index < length && json[index + 2] === bytes[from + index]) index++
      if (index === length) return key
    }
    return undefined
  }

  /** The key of a name from elsewhere; undefined as for `#keyAt`. */
  #named(name: string): Key | undefined {
    if (!isPlainKey(name)) return undefined
    // The current text is still needed.
    const text = bytes.latin1Slice(0, name.length + 1)
    bytes.write(`${name}"`, 0, 'latin1')
    const key = this.#keyAt(0)
    bytes.write(text, 0, 'latin1')
    return key
  }

  #addKey(name: string, place: number): Key | undefined {
    if (this.#sorted.length === maxKeys || name === '__proto__') return undefined
    const key: Key = {
      json: ownBytes(`,"${name}":`),
      name,
      id: this.#sorted.length,
      rank: 0,
      isEdited: this.#members.has(name),
      event: 0,
      value: undefined,
      valueSize: 0,
      valueJson: undefined,
    }
    this.#table[place] = key
    this.#sorted.push(key)
    this.#sorted.sort((left, right) => compareKeys(left.name, right.name))
    for (let rank = 0; rank < this.#sorted.length; rank++) (this.#sorted[rank] as Key).rank = rank
    return key
  }
}

function afterBlanks(from: number): number {
  let at = from
  while (isBlank(bytes[at] as number)) at++
  return at
}

/** The end of the string after its closing quote; negative if there is none. */
function afterString(from: number): number {
  hadEscapes = false
  let at = from + 1
  for (let byte = bytes[at] as number; byte !== 0x22; byte = bytes[++at] as number) {
    if (byte < 0x20) return -1
    if (byte === 0x5c) {
      hadEscapes = true
      // A zero follows the text, so that an escape at the end finds the end next.
      if (bytes[at + 1] !== 0) at++
    }
  }
  return at + 1
}

/** UTF-16 units of a part of the text. */
function unitsOf(from: number, to: number): number {
  let units = 0
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number
    if ((byte & 0xc0) !== 0x80) units++
    if (byte >= 0xf0) units++
  }
  return units
}

function afterDigits(from: number): number {
  let at = from
  for (let digit = (bytes[at] as number) - 0x30; digit >= 0 && digit <= 9; ) digit = (bytes[++at] as number) - 0x30
  return at
}

/** The end of a number; negative if it is invalid. It is copied if encoding keeps its digits. */
function afterNumber(from: number): number {
  const isNegative = bytes[from] === 0x2d
  const first = isNegative ? from + 1 : from
  let at = afterDigits(first)
  const digits = at - first
  const startsWithZero = bytes[first] === 0x30
  if (digits === 0 || (startsWithZero && digits > 1)) return -1
  numberSize = digits === 1 ? 1 : digits <= 3 ? 3 : digits <= 6 ? 6 : 12
  if (digits >= 16) {
    if (digits === 16) numberSize = isAtMost(first, maxSafeInteger) ? 12 : 19
    else numberSize = digits < 19 || (digits === 19 && isAtMost(first, isNegative ? minInteger : maxInteger)) ? 19 : -1
  } else if (isNegative && startsWithZero) numberSize = -1
  if (bytes[at] === 0x2e) {
    const point = at
    at = afterDigits(point + 1)
    const places = at - point - 1
    if (places === 0) return -1
    numberSize = digits + places > 15 || bytes[at - 1] === 0x30 ? -1 : 8
    // Small numbers are encoded with an exponent.
    if (startsWithZero && places > 4 && isZeros(point + 1, point + 5)) numberSize = -1
  }
  if (((bytes[at] as number) | 0x20) !== 0x65) return at
  numberSize = -1
  const sign = bytes[++at]
  if (sign === 0x2b || sign === 0x2d) at++
  const end = afterDigits(at)
  return end === at ? -1 : end
}

/** The largest integer that is kept as a number, and the ends of 64 bits without their signs. */
const maxSafeInteger = ownBytes('9007199254740991')
const maxInteger = ownBytes('9223372036854775807')
const minInteger = ownBytes('9223372036854775808')

/** Whether a number of the same length is not larger. */
function isAtMost(from: number, limit: Buffer): boolean {
  for (let index = 0; index < limit.length; index++) {
    if (bytes[from + index] !== limit[index]) return (bytes[from + index] as number) < (limit[index] as number)
  }
  return true
}

function isZeros(from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] !== 0x30) return false
  return true
}

const words = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')]

function afterWord(from: number, first: number): number {
  for (const word of words) {
    if (word[0] !== first) continue
    for (let index = 1; index < word.length; index++) if (bytes[from + index] !== word[index]) return -1
    return from + word.length
  }
  return -1
}

/**
 * The end of an object or array, which is validated when its value is read; negative if there is none, or it is too
 * deep.
 */
function afterNested(from: number): number {
  let depth = 0
  let at = from
  for (;;) {
    const byte = bytes[at]
    if (byte === 0x22) {
      at = afterString(at)
      if (at < 0) return -1
      continue
    }
    at++
    if (byte === 0x7b || byte === 0x5b) {
      if (++depth > maxDepth) return -1
    } else if (byte === 0x7d || byte === 0x5d) {
      if (--depth === 0) return at
    } else if (byte === 0) return -1
  }
}
