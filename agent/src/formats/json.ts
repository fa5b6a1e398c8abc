// Converts between JSON text and values. Reading distinguishes 64-bit integers and floats exactly; writing sorts keys by code
// point. It accepts RFC 8259 with a depth of at most 127; an error is a value, never an exception.

import { isUtf8 } from 'node:buffer'
import { Body } from '../event/body.ts'
import { type Shape, shapeOf } from '../event/shape.ts'
import { Timestamp } from '../event/timestamp.ts'
import {
  Bytes,
  emptyDictionary,
  Float,
  isObject,
  Regex,
  setField,
  sortedFieldNames,
  type Value,
  type ValueObject,
} from '../event/value.ts'
import { compileJsonWriter } from './json-bytes.ts'
import { FailedJson, isBlank, JsonReader } from './json-reader.ts'

export function isFailedJson(value: unknown): value is FailedJson {
  return value instanceof FailedJson
}

const maxDepth = 127
/**
 * The depth of longer texts is checked before the platform reads them, because deep nesting needs forty times their size.
 */
const longText = 32_768

/** True if arrays and objects are nested too deeply, even if the text has other errors. */
function isTooDeep(text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x5b:
      case 0x7b:
        if (++depth > maxDepth) return true
        break
      case 0x5d:
      case 0x7d:
        depth--
        break
      case 0x22:
        at = text.indexOf('"', at + 1)
        while (at > 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1)
        if (at < 0) return false
    }
  }
  return false
}

/** True if an odd number of backslashes precedes the character. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1
  while (text.charCodeAt(before) === 0x5c) before--
  return (at - before) % 2 === 0
}

// Matches where a text may contain a number that `JSON.parse` would change: an integral float, an exponent, -0, or 16 digits.
const doubtful = /\d(?:\.0|[eE]|[\d.]{15})|-0/g

/**
 * True if the text may contain such a number, except wide integers, which are recorded. Strings may cause false
 * positives.
 */
function hasInexact(text: string): boolean {
  doubtful.lastIndex = 0
  while (doubtful.test(text)) {
    const end = doubtful.lastIndex
    let start = end - 1
    while (isNumberPart(text.charCodeAt(start - 1))) start--
    const before = text.charCodeAt(start - 1)
    // A number follows a colon, a comma, a bracket or a blank. After a letter or a quote it is part of a string.
    if (before !== 0x3a && before !== 0x2c && before !== 0x5b && before > 0x20) continue
    if (!isFraction(text, end) && !isLongButKnown(text, start, end)) return true
  }
  return false
}

/**
 * True if the number at `start` has many digits but is still exact: a fraction that was not rounded to an integer, or a wide integer.
 * `end` is after one of its digits.
 */
function isLongButKnown(text: string, start: number, end: number): boolean {
  let at = start
  while (isNumberPart(text.charCodeAt(at))) at++
  if (at - start < 16 || at < end) return false
  const token = text.slice(start, at)
  if (/^-?\d+\.\d+$/.test(token)) return !Number.isInteger(Number(token))
  return /^-?\d+$/.test(token) && noteWide(token)
}

/** Digits, signs, points and exponents. */
function isNumberPart(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) || code === 0x2e || code === 0x2d || code === 0x2b || code === 0x65 || code === 0x45
  )
}

/** True if the match ends in a zero of a number such as 1.05 or -0.5, which is certainly a fraction. */
function isFraction(text: string, end: number): boolean {
  if (text.charCodeAt(end - 1) !== 0x30) return false
  let at = end
  const mark = text.charCodeAt(end - 2)
  if (mark === 0x2d) {
    if (text.charCodeAt(at) !== 0x2e) return false
    at++
  } else if (mark !== 0x2e) return false
  while (text.charCodeAt(at) === 0x30) at++
  const first = at
  while (text.charCodeAt(at) >= 0x30 && text.charCodeAt(at) <= 0x39) at++
  return at > first && (text.charCodeAt(at) | 0x20) !== 0x65
}

/** The value of a JSON text. */
export function parseJson(text: string): Value | FailedJson {
  const first = text.charCodeAt(0)
  if (
    (first === 0x7b || first === 0x5b) &&
    !(text.includes('\\') && (hasLoneSurrogate(text) || hasEscapedKey(text))) &&
    !(text.length > longText && isTooDeep(text))
  ) {
    try {
      const value = JSON.parse(text) as Value[] | ValueObject
      wideIntegers.length = 0
      // A short text without arrays is not nested too deeply, and all its numbers follow colons.
      if (text.length < maxDepth * 4 && !text.includes('[')) {
        if (membersAreExact(text)) return withWideIntegers(value)
      } else {
        const doubt = doubtAbout(value, 1)
        if (doubt === 'none') return value
        if (doubt === 'members' ? membersAreExact(text) : doubt === 'items' && !hasInexact(text)) {
          return withWideIntegers(value)
        }
      }
    } catch {
      // The exact reader finds the position of the error.
    }
  }
  return new JsonReader(text, maxDepth).read()
}

/** Like `parseJson`, but objects become dictionaries, for texts whose keys are data. */
export function parseJsonToDictionaries(text: string): Value | FailedJson {
  return new JsonReader(text, maxDepth, Number.POSITIVE_INFINITY, emptyDictionary).read()
}

/**
 * True if a key may contain an escape. V8 14.6 reads `{"x":0,"\\n":1}` with a key of one backslash if it has read such a key at
 * that position before: it compares the expected key with the raw bytes of the escape.
 */
function hasEscapedKey(text: string): boolean {
  for (let at = text.indexOf('\\'); at >= 0; ) {
    let end = text.indexOf('"', at + 1)
    while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
    if (end < 0) return true
    let next = end + 1
    while (isBlank(text.charCodeAt(next))) next++
    if (text.charCodeAt(next) === 0x3a) return true
    at = text.indexOf('\\', next)
  }
  return false
}

/**
 * True if the text may contain an escaped lone surrogate, which the platform accepts. A backslash before the escape is
 * reason enough to use the exact reader.
 */
function hasLoneSurrogate(text: string): boolean {
  for (let at = text.indexOf('\\u'); at >= 0; at = text.indexOf('\\u', at + 2)) {
    if (!isSurrogate(text, at, 0x38, 0x42)) {
      if (isSurrogate(text, at, 0x43, 0x46)) return true
      continue
    }
    if (text.charCodeAt(at - 1) === 0x5c || !text.startsWith('\\u', at + 6) || !isSurrogate(text, at + 6, 0x43, 0x46)) {
      return true
    }
    at += 10
  }
  return false
}

/** True if the escape at `at` begins with D and a digit between `from` and `to`, in either case. */
function isSurrogate(text: string, at: number, from: number, to: number): boolean {
  if ((text.charCodeAt(at + 2) | 0x20) !== 0x64) return false
  let digit = text.charCodeAt(at + 3)
  if (digit > 0x60) digit -= 0x20
  return digit >= from && digit <= to
}

// Integers that do not fit in a double, such as nanoseconds since 1970: `JSON.parse` has rounded them. If no two were rounded
// to the same double, the rounded value identifies the integer, wherever it is in the result.
const wideIntegers: { readonly rounded: number; readonly digits: string }[] = []
/** If a text has more of them, the exact reader is used. */
const maxWideIntegers = 16

/** Records an integer of more than 15 digits; false if only the exact reader can read it. */
function noteWide(digits: string): boolean {
  const rounded = Number(digits)
  if (Number.isSafeInteger(rounded)) return true
  // Beyond 64 bits, an integer is read as a float.
  if (digits.length > 20 || (Math.abs(rounded) >= 9.2e18 && !fitsInteger(digits))) return false
  for (const known of wideIntegers) if (known.rounded === rounded) return known.digits === digits
  if (wideIntegers.length === maxWideIntegers) return false
  wideIntegers.push({ rounded, digits })
  return true
}

function fitsInteger(digits: string): boolean {
  const whole = BigInt(digits)
  return BigInt.asIntN(64, whole) === whole
}

/** The value with its wide integers restored. `JSON.parse` has just created it, so it has no other holder. */
function withWideIntegers(value: Value[] | ValueObject): Value {
  if (wideIntegers.length > 0) {
    restoreWideIntegers(value)
    wideIntegers.length = 0 // they are slices of the text
  }
  return value
}

function restoreWideIntegers(value: Value[] | ValueObject): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item = value[index] as Value
      if (typeof item === 'number') value[index] = wideInteger(item)
      else if (typeof item === 'object' && item !== null) restoreWideIntegers(item as ValueObject)
    }
    return
  }
  for (const name in value) {
    const member = value[name]
    if (typeof member === 'number') {
      const exact = wideInteger(member)
      if (exact !== member) setField(value, name, exact)
    } else if (typeof member === 'object' && member !== null) restoreWideIntegers(member as ValueObject)
  }
}

function wideInteger(rounded: number): number | bigint {
  if (!Number.isSafeInteger(rounded)) {
    for (const known of wideIntegers) if (known.rounded === rounded) return BigInt(known.digits)
  }
  return rounded
}

/**
 * Where a result of `JSON.parse` may differ from its text. Fractions never do. Integers may have been written as 1.0, as 1e3
 * or with more digits than fit in a double: only as object members, or also as array items. `depth`: nested too deeply.
 */
type Doubt = 'none' | 'members' | 'items' | 'depth'

function doubtAbout(value: object | Value, depth: number): Doubt {
  if (depth > maxDepth) return 'depth'
  let doubt: Doubt = 'none'
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item = value[index] as Value
      if (typeof item === 'number') {
        if (Number.isInteger(item) || !Number.isFinite(item)) doubt = 'items'
      } else if (typeof item === 'object' && item !== null) {
        const below = doubtAbout(item, depth + 1)
        if (below === 'depth') return below
        if (below === 'items' || doubt === 'none') doubt = below
      }
    }
    return doubt
  }
  const object = value as ValueObject
  for (const name in object) {
    const member = object[name]
    if (typeof member === 'number') {
      if (!Number.isFinite(member)) return 'depth' // too large: the exact reader reports it
      if (doubt === 'none' && Number.isInteger(member)) doubt = 'members'
    } else if (typeof member === 'object' && member !== null) {
      const below = doubtAbout(member, depth + 1)
      if (below === 'depth') return below
      if (below === 'items' || doubt === 'none') doubt = below
    }
  }
  return doubt
}

/**
 * True if every number after a colon is a wide integer, which is recorded, or a number that `JSON.parse` keeps. Strings may
 * cause false negatives.
 */
function membersAreExact(text: string): boolean {
  for (let colon = text.indexOf(':'); colon >= 0; colon = text.indexOf(':', colon + 1)) {
    let at = colon + 1
    let code = text.charCodeAt(at)
    while (code === 0x20) code = text.charCodeAt(++at)
    const first = at
    const negative = code === 0x2d
    if (negative) code = text.charCodeAt(++at)
    if (code < 0x30 || code > 0x39) {
      if (code < 0x20) return false // another blank: not worth a closer check
      continue
    }
    const before = text.charCodeAt(colon - 1)
    if (before !== 0x22) {
      if (before > 0x20) continue // not after a key: part of a string
      return false
    }
    const start = at
    while (code >= 0x30 && code <= 0x39) code = text.charCodeAt(++at)
    if ((code | 0x20) === 0x65) return false
    if (code === 0x2e) {
      // Beyond 15 digits a fraction may be rounded to an integer.
      if (at - start > 15) return false
      let digits = 0
      for (code = text.charCodeAt(++at); code >= 0x30 && code <= 0x39; code = text.charCodeAt(++at)) digits |= code
      // Only zeros: an integral float.
      if (digits === 0x30 || (code | 0x20) === 0x65) return false
      // A float with too many digits may have been rounded to an integer.
      if (at - start > 16 && Number.isInteger(Number(text.slice(first, at)))) return false
    } else if (at - start > 15) {
      if (!noteWide(text.slice(first, at))) return false
    } else if (negative && text.charCodeAt(start) === 0x30) return false
  }
  return true
}

/** Like `parseJson`, but objects and arrays below the depth stay text. */
export function parseJsonDepth(text: string, depth: number): Value | FailedJson {
  // Only the reader without a depth skips a byte order mark.
  if (text.charCodeAt(0) === 0xfeff) return new FailedJson('expected value at line 1 column 1')
  return new JsonReader(text, maxDepth, depth).read()
}

/**
 * Where a text that is not UTF-8 stops to be JSON: at the end of the first string with such bytes, unless there is another error
 * before it.
 */
export function parseInvalidUtf8(bytes: Buffer): FailedJson {
  // With an ASCII character for each byte, columns are those of the bytes.
  const text = Buffer.from(bytes.map((byte) => Math.min(byte, 0x7f))).toString('latin1')
  const end = endOfInvalidString(bytes)
  const before = new JsonReader(text, maxDepth).read()
  const place = text.slice(0, end)
  const lines = place.split('\n')
  const here = [lines.length, (lines.at(-1) as string).length] as const
  const earlier = isFailedJson(before) ? /line (\d+) column (\d+)$/.exec(before.reason) : null
  if (isFailedJson(before) && earlier !== null) {
    const [line, column] = [Number(earlier[1]), Number(earlier[2])]
    if (end < 0 || line < here[0] || (line === here[0] && column < here[1])) return before
  }
  return new FailedJson(`invalid unicode code point at line ${here[0]} column ${here[1]}`)
}

/** The position after the first closed string that is not UTF-8, or -1. */
function endOfInvalidString(bytes: Buffer): number {
  let start = -1
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (start < 0) {
      if (byte === 0x22) start = at
    } else if (byte === 0x5c) at++
    else if (byte === 0x22) {
      if (!isUtf8(bytes.subarray(start, at))) return at + 1
      start = -1
    }
  }
  return -1
}

const writeObject = compileJsonWriter(writePlain)

/** Writes an object as JSON into a body, without blanks, with keys sorted by code point. `shape` is that of the object. */
export function writeJsonTo(body: Body, object: ValueObject, shape: Shape | null = shapeOf(object)): void {
  writeObject(object, shape, body)
}

/** The same for any value, as text. */
export function writeJson(value: Value): string {
  if (!isObject(value)) return writePlain(value)
  scratch.length = 0
  writeJsonTo(scratch, value)
  const text = scratch.buffer.toString('utf8', 0, scratch.length)
  if (scratch.length > maxScratch) scratch = new Body(4096)
  return text
}

let scratch = new Body(4096)
/** A single huge value must not keep its memory forever. */
const maxScratch = 1 << 20

/** The reference implementation of `writeJson`, value by value. */
function writePlain(value: Value): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return Number.isInteger(value) ? String(value) : jsonFloat(value)
    case 'bigint':
      return value.toString()
    case 'boolean':
      return value ? 'true' : 'false'
  }
  if (value === null) return 'null'
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    let text = `[${writePlain(value[0] as Value)}`
    for (let index = 1; index < value.length; index++) text += `,${writePlain(value[index] as Value)}`
    return `${text}]`
  }
  if (value instanceof Timestamp) return `"${value}"`
  if (value instanceof Float) return jsonFloat(value.value)
  if (value instanceof Bytes) return JSON.stringify(value.toString())
  if (value instanceof Regex) return JSON.stringify(value.source)
  let text = ''
  for (const name of sortedFieldNames(value)) {
    text += `${text === '' ? '{' : ','}${JSON.stringify(name)}:${writePlain(value[name] as Value)}`
  }
  return text === '' ? '{}' : `${text}}`
}

/** JSON text with a line for each element, indented by two spaces. */
export function writePrettyJson(value: Value, indent = '\n'): string {
  const deeper = `${indent}  `
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    return `[${value.map((item) => deeper + writePrettyJson(item, deeper)).join(',')}${indent}]`
  }
  if (!isObject(value)) return writeJson(value)
  const fields = value
  const names = sortedFieldNames(fields)
  if (names.length === 0) return '{}'
  const members = names.map(
    (name) => `${deeper}${JSON.stringify(name)}: ${writePrettyJson(fields[name] as Value, deeper)}`,
  )
  return `{${members.join(',')}${indent}}`
}

/** A float in JSON: shortest digits, `.0` if integral, an exponent from 1e16 up and below 1e-5; infinities are null. */
export function jsonFloat(value: number): string {
  if (!Number.isFinite(value)) return 'null'
  const magnitude = Math.abs(value)
  if (magnitude >= 1e16 || (magnitude < 1e-5 && magnitude !== 0)) return value.toExponential()
  if (!Number.isInteger(value)) return String(value)
  return Object.is(value, -0) ? '-0.0' : `${value}.0`
}

/** A float as text: the shortest digits that read back, without exponent, and without a fraction if it is integral. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf'
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const text = String(value)
  const at = text.indexOf('e')
  if (at < 0) return text
  const exponent = Number(text.slice(at + 1))
  const sign = value < 0 ? '-' : ''
  const [whole, fraction = ''] = text.slice(sign.length, at).split('.') as [string, string?]
  const digits = whole + fraction
  return exponent < 0 ? `${sign}0.${'0'.repeat(-exponent - 1)}${digits}` : sign + digits.padEnd(exponent + 1, '0')
}
