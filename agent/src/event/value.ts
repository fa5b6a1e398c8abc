// The values of fields. Three rules apply everywhere:
//  1. Values inside an event are immutable. Only the event's owner may change its root object in place; a write below the root copies
//     the objects along the path. So copying an event means copying its root object.
//  2. A property that is `undefined` is absent. To remove a field, assign `undefined`; never use `delete`, which would turn the object
//     into a slow dictionary.
//  3. An integral JavaScript number is an integer, any other number is a float. An integer beyond 2^53 is a bigint; a float without a
//     fraction (1.0, 1e300, -0.0) is a `Float`.
// An object without a prototype is a dictionary: the engine keeps no layout for its keys, which costs less if the keys are data that
// does not recur. Otherwise it behaves like any other object.

import { ownText } from '../bounded-map.ts'
import type { Timestamp } from './timestamp.ts'

/** A float with an integral value, distinct from the integer of that value. */
export class Float {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

/** A string whose bytes are not valid UTF-8. */
export class Bytes {
  readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** The text with every invalid sequence replaced by U+FFFD. */
  toString(): string {
    return this.bytes.toString('utf8')
  }
}

/** A regular expression as a value. Two are equal if their patterns are equal. */
export class Regex {
  /** The pattern as the user wrote it. */
  readonly source: string
  /** The pattern translated to JavaScript, compiled once. */
  readonly compiled: RegExp

  constructor(source: string, compiled: RegExp) {
    this.source = source
    this.compiled = compiled
  }
}

export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Bytes
  | Timestamp
  | Regex
  | Value[]
  | ValueObject

/** An object value. Only own properties count, `undefined` means absent, and the order of keys has no meaning. */
export interface ValueObject {
  [key: string]: Value | undefined
}

/** A float as a value: wraps an integral number in `Float`, so that it does not become an integer. */
export function float(value: number): number | Float {
  return Number.isInteger(value) ? new Float(value) : value
}

/** Converts a bigint, already wrapped to 64 bits, to a plain number if that is exact. */
export function integer(value: bigint): number | bigint {
  return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value
}

export function isInteger(value: Value | undefined): value is number | bigint {
  return (typeof value === 'number' && Number.isInteger(value)) || typeof value === 'bigint'
}

export function isFloat(value: Value | undefined): value is number | Float {
  return (typeof value === 'number' && !Number.isInteger(value)) || value instanceof Float
}

/** True for plain objects; false for arrays and for classes such as `Float`. */
export function isObject(value: Value | undefined): value is ValueObject {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/**
 * Copies a value with its texts and bytes to separate memory, so that it can outlive its event. The originals may be slices
 * of much longer ones.
 */
export function ownValue(value: Value): Value {
  if (typeof value === 'string') return ownText(value)
  if (value instanceof Bytes) return new Bytes(Buffer.from(new Uint8Array(value.bytes).buffer))
  if (Array.isArray(value)) return value.map(ownValue)
  if (!isObject(value)) return value
  const own = isDictionary(value) ? emptyDictionary() : {}
  for (const name of fieldNames(value)) setField(own, name, ownValue(value[name] as Value))
  return own
}

const inherited = new Set(Object.getOwnPropertyNames(Object.prototype))

/** True if the engine keeps no layout for the keys of the object. */
export function isDictionary(object: ValueObject): boolean {
  return Object.getPrototypeOf(object) === null
}

export function emptyDictionary(): ValueObject {
  return Object.create(null) as ValueObject
}

/** A shallow copy. The copy of a dictionary is also a dictionary. */
export function copyObject(object: ValueObject): ValueObject {
  return isDictionary(object) ? copyDictionary(object) : { ...object }
}

function copyDictionary(object: ValueObject): ValueObject {
  const copy = emptyDictionary()
  for (const key in object) copy[key] = object[key]
  return copy
}

/** Merges two objects into a new one. Fields of the second object take precedence. */
export function mergeObjects(first: ValueObject, second: ValueObject): ValueObject {
  if (isDictionary(second)) {
    const merged = copyDictionary(first)
    for (const key in second) if (second[key] !== undefined) merged[key] = second[key]
    return merged
  }
  // The fast path of the engine copies all members. It is correct only if no undefined member can replace a value.
  if (isComplete(second)) return Object.assign(copyObject(first), second)
  const merged = copyObject(first)
  for (const key in second) if (second[key] !== undefined) setField(merged, key, second[key])
  return merged
}

/** Whether `Object.assign` copies the object correctly. */
function isComplete(object: ValueObject): boolean {
  for (const key in object) if (object[key] === undefined || key === '__proto__') return false
  return true
}

/** Reads a field whose name is only known at run time. Names such as `constructor` are ordinary fields. */
export function getField(object: ValueObject, key: string): Value | undefined {
  return inherited.has(key) && !Object.hasOwn(object, key) ? undefined : object[key]
}

/** Writes a field in place, in an object that the caller owns. `__proto__` is an ordinary field. */
export function setField(object: ValueObject, key: string, value: Value | undefined): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  } else {
    object[key] = value
  }
}

/** Whether plain access to this property could read from Object.prototype, so that `getField` is needed. */
export function isInheritedName(key: string): boolean {
  return inherited.has(key)
}

/** Names of the present fields, in no particular order. */
export function fieldNames(object: ValueObject): string[] {
  const names = Object.keys(object)
  for (let index = 0; index < names.length; index++) {
    if (object[names[index] as string] === undefined) return names.filter((name) => object[name] !== undefined)
  }
  return names
}

/** Names of the present fields in the order of their UTF-8 bytes, as the remap language and all encoders require. */
export function sortedFieldNames(object: ValueObject): string[] {
  const names = fieldNames(object)
  if (names.length > maxNames) return names.sort(compareKeys)
  const slot = (names.length * 7 + (names[0]?.length ?? 0) * 3 + (names.at(-1)?.length ?? 0)) & (nameLists - 1)
  const known = sortedLists[slot]
  if (known !== undefined && sameNames(known.names, names)) return known.sorted.slice()
  const sorted = names.slice().sort(compareKeys)
  if (!areShort(names)) return sorted
  sortedLists[slot] = { names, sorted }
  return sorted.slice()
}

// Events from one origin have the same fields in the same order, so recently sorted lists are cached.
const nameLists = 64
const maxNames = 64
const sortedLists = new Array<{ readonly names: readonly string[]; readonly sorted: readonly string[] } | undefined>(
  nameLists,
)

/** Maximum total length of the names in a cached list, because names come from data. */
const maxCharacters = 4096

function areShort(names: readonly string[]): boolean {
  let length = 0
  for (let index = 0; index < names.length; index++) length += (names[index] as string).length
  return length <= maxCharacters
}

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  if (left.length !== right.length) return false
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false
  return true
}

/** Orders strings by code point, which equals the order of their UTF-8 bytes. Plain comparison would use UTF-16 units. */
export function compareKeys(left: string, right: string): number {
  const length = Math.min(left.length, right.length)
  for (let index = 0; index < length; index++) {
    let a = left.charCodeAt(index)
    let b = right.charCodeAt(index)
    if (a !== b) {
      // Surrogates (D800 to DFFF) represent code points above E000 to FFFF.
      if (a >= 0xd800 && b >= 0xd800) {
        a = a >= 0xe000 ? a - 0x800 : a + 0x2000
        b = b >= 0xe000 ? b - 0x800 : b + 0x2000
      }
      return a - b
    }
  }
  return left.length - right.length
}

/** Converts bytes to a string value: text if they are valid UTF-8, otherwise `Bytes`. */
export function stringFromBytes(bytes: Buffer): string | Bytes {
  const text = bytes.toString('utf8')
  // U+FFFD in the text means either that the input contains it, or that invalid bytes were replaced.
  return text.includes('\ufffd') && !bytes.equals(Buffer.from(text, 'utf8')) ? new Bytes(Buffer.from(bytes)) : text
}
