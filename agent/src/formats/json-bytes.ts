// Writes JSON as bytes, directly into the body of a request. For objects with a frequent key sequence, generated code writes the
// members in encoding order: keys as constants, strings and whole numbers byte by byte. For all other objects, one loop does the same
// with cached or newly sorted keys. The simple text writer handles rare values. The cost equals that of the platform's writer, which
// supports neither key order nor boxed values, and takes twice as long for strings that are slices of a longer one. Objects shared by
// many events, such as the metadata of a container, keep their bytes.

import { isUtf8 } from 'node:buffer'
import type { Body } from '../event/body.ts'
import { collectMembers, type KeyOrder, type Shape, shapeOf } from '../event/shape.ts'
import { maxKeptJson, sharedObject } from '../event/shared-object.ts'
import { Timestamp } from '../event/timestamp.ts'
import { compareKeys, type Value, type ValueObject } from '../event/value.ts'

/** The simple serialisation of a value; the caller provides it, because it owns the rules. */
export type WriteValue = (value: Value) => string

/**
 * A buffer with the method that `write` calls internally; called for every string, the indirection would cost as much as the
 * work.
 */
type Bytes = Buffer & { utf8Write(text: string, at: number): number }

/**
 * Writes from `at` on; returns the end. An end beyond the buffer means that it was too small, and that the object must be written
 * again into a larger one: writes beyond a typed array are ignored, so no check is needed before.
 */
type ObjectWriter = (object: ValueObject, bytes: Bytes, at: number) => number

/** 1 for characters that a UTF-8 JSON string cannot contain unescaped, and for all non-ASCII characters. */
const special = new Uint8Array(65_536).map((_, code) => (code < 32 || code === 34 || code === 92 || code > 127 ? 1 : 0))
/** Longer strings are first copied by the platform, and then checked. */
const longString = 40
/** Numbers and words: calling the platform for so few bytes costs more than writing them. */
const shortText = 24

/** Maximum number of bytes reserved before an object; a longer object is written twice if the body is nearly full. */
const maxRoom = 16_384

/** Creates a writer for objects that uses `text` for rare values. */
export function compileJsonWriter(text: WriteValue): (object: ValueObject, shape: Shape | null, body: Body) => void {
  /** Members of the objects being written: those of a nested object follow those of its parent. */
  const values: (Value | undefined)[] = []
  let valuesEnd = 0

  /** Writes any member except a string. */
  const other = (value: Value, bytes: Bytes, at: number): number => {
    if (typeof value === 'number') return writeNumber(value, bytes, at)
    if (typeof value !== 'object' || value === null || !isPlainObject(value)) return writeAny(value, bytes, at)
    return writeNested(value, bytes, at)
  }

  const writeNested = (value: ValueObject, bytes: Bytes, at: number): number => {
    const shared = sharedObject(value)
    if (shared === undefined) return writeObject(value, shapeOf(value), bytes, at)
    const { json } = shared
    if (json === undefined) {
      const end = writeObject(value, shapeOf(value), bytes, at)
      if (end <= bytes.length && end - at <= maxKeptJson) shared.json = new Uint8Array(bytes.subarray(at, end))
      return end
    }
    const end = at + json.length
    if (end <= bytes.length) bytes.set(json, at)
    return end
  }

  const writeNumber = (value: number, bytes: Bytes, at: number): number => {
    if ((value | 0) !== value || value < 0) return writeText(text(value), bytes, at)
    let end = at + 1
    for (let power = 10; power <= value; power *= 10) end++
    let rest = value
    for (let place = end - 1; place >= at; place--) {
      const tens = (rest / 10) | 0
      bytes[place] = 48 + rest - tens * 10
      rest = tens
    }
    return end
  }

  const writeAny = (value: Value, bytes: Bytes, at: number): number => {
    if (typeof value === 'string') return writeString(value, bytes, at)
    if (typeof value === 'number') return writeNumber(value, bytes, at)
    if (typeof value === 'object' && value !== null) {
      if (Array.isArray(value)) return writeArray(value, bytes, at)
      if (value instanceof Timestamp) return writeTimestamp(value, bytes, at)
      if (isPlainObject(value)) return writeNested(value, bytes, at)
    }
    return writeText(text(value), bytes, at)
  }

  const writeArray = (items: readonly Value[], bytes: Bytes, at: number): number => {
    let end = at
    bytes[end++] = 0x5b
    for (let index = 0; index < items.length; index++) {
      if (index > 0) bytes[end++] = 0x2c
      end = writeAny(items[index] as Value, bytes, end)
    }
    bytes[end++] = 0x5d
    return end
  }

  const writeObject = (object: ValueObject, shape: Shape | null, bytes: Bytes, at: number): number => {
    if (shape !== null) {
      shape.writer ??= generate(shape.names, other)
      return (shape.writer as ObjectWriter)(object, bytes, at)
    }
    const base = valuesEnd
    const order = collectMembers(object, values, base)
    if (order !== undefined) return writeOrdered(order, base, bytes, at)
    values.fill(undefined, base)
    return writeUnordered(object, bytes, at)
  }

  /** Writes the members from `base` on, in a known order. */
  const writeOrdered = ({ places, keys }: KeyOrder, base: number, bytes: Bytes, start: number): number => {
    const { length } = places
    let at = start
    valuesEnd = base + length
    for (let index = 0; index < length; index++) {
      const place = base + (places[index] as number)
      const value = values[place]
      if (value === undefined) continue
      values[place] = undefined // so that no value is kept alive
      const key = keys[index] as Uint8Array
      for (let byte = 0; byte < key.length; byte++) bytes[at + byte] = key[byte] as number
      at += key.length
      at = typeof value === 'string' ? writeString(value, bytes, at) : other(value, bytes, at)
    }
    valuesEnd = base
    return closeObject(bytes, start, at)
  }

  /** Writes an object whose keys may be arbitrary and may never recur. */
  const writeUnordered = (object: ValueObject, bytes: Bytes, start: number): number => {
    const names = Object.keys(object)
    sortKeys(names)
    let at = start
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string
      const value = object[name]
      if (value === undefined) continue
      bytes[at] = 0x2c
      at = writeString(name, bytes, at + 1)
      bytes[at++] = 0x3a
      at = typeof value === 'string' ? writeString(value, bytes, at) : other(value, bytes, at)
    }
    return closeObject(bytes, start, at)
  }

  let room = 256
  return (object, shape, body) => {
    const start = body.length
    body.reserve(room)
    for (;;) {
      valuesEnd = 0
      const end = writeObject(object, shape, body.buffer as Bytes, start)
      if (end <= body.buffer.length) {
        body.length = end
        if (end - start > room) room = Math.min(end - start, maxRoom)
        return
      }
      body.reserve(end - start)
    }
  }
}

/** The comma before the first member becomes the bracket. */
function closeObject(bytes: Bytes, start: number, end: number): number {
  bytes[start] = 0x7b
  const at = end === start ? end + 1 : end
  bytes[at] = 0x7d
  return at + 1
}

/** Insertion sort is fastest for few keys. */
const fewKeys = 32

function sortKeys(names: string[]): void {
  if (names.length > fewKeys) {
    names.sort(compareKeys)
    return
  }
  for (let index = 1; index < names.length; index++) {
    const name = names[index] as string
    let place = index
    while (place > 0 && compareKeys(names[place - 1] as string, name) > 0) {
      names[place] = names[place - 1] as string
      place--
    }
    names[place] = name
  }
}

function isPlainObject(value: object): value is ValueObject {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function writeString(value: string, bytes: Bytes, at: number): number {
  const { length } = value
  if (length > longString) return writeLong(value, bytes, at)
  const from = at + 1
  let odd = 0
  bytes[at] = 0x22
  for (let index = 0; index < length; index++) {
    const code = value.charCodeAt(index)
    bytes[from + index] = code
    odd |= special[code] as number
  }
  if (odd !== 0) return writeText(JSON.stringify(value), bytes, at)
  bytes[from + length] = 0x22
  return from + length + 1
}

function writeTimestamp(value: Timestamp, bytes: Bytes, at: number): number {
  bytes[at] = 0x22
  const end = value.writeTo(bytes, at + 1)
  bytes[end] = 0x22
  return end + 1
}

function writeLong(value: string, bytes: Bytes, at: number): number {
  const end = at + value.length + 2
  if (end > bytes.length) return end
  // A JSON object within a string contains quotes, so checking after a copy would be wasted work.
  if (value.charCodeAt(0) === 0x7b) return writeText(JSON.stringify(value), bytes, at)
  // If bytes and characters are equal in number, all is ASCII, or the buffer is too short, which the check below
  // detects.
  bytes[at] = 0x22
  if (bytes.utf8Write(value, at + 1) !== value.length) return writeText(JSON.stringify(value), bytes, at)
  for (let index = at + 1; index < end - 1; index++) {
    if (special[bytes[index] as number] !== 0) return writeText(JSON.stringify(value), bytes, at)
  }
  bytes[end - 1] = 0x22
  return end
}

/** Writes UTF-8 text as a JSON string with quotes; invalid UTF-8 is replaced as decoders do. */
export function writeJsonStringOf({ buffer: text, length }: Body, body: Body): void {
  const start = body.length
  body.reserve(length + (length >> 2) + 8)
  let { buffer } = body
  let at = body.length
  let high = 0
  buffer[at++] = 0x22
  for (let index = 0; index < length; index++) {
    const code = text[index] as number
    if (at + 8 > buffer.length) {
      body.length = at
      body.reserve(length - index + 8)
      buffer = body.buffer
    }
    if (code >= 32 && code !== 34 && code !== 92) {
      buffer[at++] = code
      high |= code
      continue
    }
    const escaped = escapes[code] as Buffer
    for (let place = 0; place < escaped.length; place++) buffer[at++] = escaped[place] as number
  }
  if (high > 127 && !isUtf8(text.subarray(0, length))) {
    body.length = start
    body.writeText(JSON.stringify(text.toString('utf8', 0, length)))
    return
  }
  buffer[at++] = 0x22
  body.length = at
}

/** The escapes of special bytes below 128 in a JSON string. */
const escapes = Array.from({ length: 128 }, (_, code) =>
  Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1)),
)

/** Writes a text that already is JSON. */
function writeText(text: string, bytes: Bytes, at: number): number {
  const { length } = text
  if (length <= shortText) {
    let high = 0
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index)
      bytes[at + index] = code
      high |= code
    }
    if (high < 128) return at + length
  }
  const maxEnd = at + length * 3 // the maximum UTF-8 length of a UTF-16 unit
  return maxEnd > bytes.length ? Math.max(maxEnd, bytes.length + 1) : at + bytes.utf8Write(text, at)
}

function generate(names: readonly string[], other: (value: Value, bytes: Bytes, at: number) => number): ObjectWriter {
  const code = names.map((name) => {
    const key = Buffer.from(`,${JSON.stringify(name)}:`)
    const constants = Array.from(key, (byte, place) => `b[at + ${place}] = ${byte}`).join('; ')
    return [
      `v = object[${JSON.stringify(name)}]`,
      'if (v !== undefined) {',
      `${constants}; at += ${key.length}`,
      "at = typeof v === 'string' ? string(v, b, at) : other(v, b, at)",
      '}',
    ].join('\n')
  })
  const body = [
    '"use strict"',
    'return function write(object, b, start) {',
    'let at = start, v',
    ...code,
    'return close(b, start, at)',
    '}',
  ].join('\n')
  return new Function('string', 'other', 'close', body)(writeString, other, closeObject) as ObjectWriter
}
