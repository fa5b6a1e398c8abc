// JSON as bytes, straight into the body of a request. Objects with the same sequence of keys share a shape: code generated once
// writes their members in the order of encoders, keys as constants, strings and whole numbers byte by byte; whatever is rare is
// written by the plain writer of text. That costs no more than the platform's own writer, knows the order of keys and our boxes,
// and does not mind strings that are views of a longer one, for which the platform's writer takes twice the time.
// Nested objects that many events share, such as the metadata of a pod, are recognised by identity and written once.

import { isUtf8 } from 'node:buffer'
import type { Body } from '../event/body.ts'
import { type Shape, shapeOf } from '../event/shape.ts'
import { Timestamp } from '../event/timestamp.ts'
import type { Value, ValueObject } from '../event/value.ts'

/** The text of a value, the plain way; given by the caller, which owns the rules. */
export type WriteValue = (value: Value) => string

/** A buffer with the writer that `write` calls in the end; called for every string, the way there costs as much as the work. */
type Bytes = Buffer & { utf8Write(text: string, at: number): number }

/**
 * Writes from `at` on; gives the end. An end behind the buffer's own means that there was too little room, and that the object
 * is to be written again into more: bytes that fall behind the end of a typed array are dropped, so nothing is tested until then.
 */
type ObjectWriter = (object: ValueObject, bytes: Bytes, at: number) => number

/** Members whose values were objects, as they were in the last object of the shape. */
interface Shared {
  readonly last: (object | undefined)[]
  /** Their bytes, from the second time on. */
  readonly bytes: (Buffer | undefined)[]
}

/** 1 for what does not stand for itself in a JSON string of UTF-8: quotes, backslashes, controls, all that is not ASCII. */
const special = new Uint8Array(65_536).map((_, code) => (code < 32 || code === 34 || code === 92 || code > 127 ? 1 : 0))
/** Longer strings are copied by the platform, and looked through after that. */
const longString = 40
/** Numbers and words: to call the platform for so few bytes costs more than to write them. */
const shortText = 24

/** Bytes that are made ready before an object at most; one that is longer is written twice when the body is nearly full. */
const mostRoom = 16_384

/** Makes a writer of objects that falls back to `text` for what is rare. */
export function compileJsonWriter(text: WriteValue): (object: ValueObject, shape: Shape | null, body: Body) => void {
  /** Any member but a string. */
  const other = (value: Value, bytes: Bytes, at: number, shared: Shared, index: number): number => {
    if (typeof value === 'number') return writeNumber(value, bytes, at)
    if (typeof value !== 'object' || value === null || !isPlainObject(value)) return writeAny(value, bytes, at)
    if (value !== shared.last[index]) {
      shared.last[index] = value
      shared.bytes[index] = undefined
      return writeObject(value, shapeOf(value), bytes, at)
    }
    const known = shared.bytes[index]
    if (known === undefined) {
      const end = writeObject(value, shapeOf(value), bytes, at)
      if (end <= bytes.length) shared.bytes[index] = Buffer.from(bytes.subarray(at, end))
      return end
    }
    const end = at + known.length
    if (end <= bytes.length) bytes.set(known, at)
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
      if (value instanceof Timestamp) return writeString(value.toString(), bytes, at)
      if (isPlainObject(value)) return writeObject(value, shapeOf(value), bytes, at)
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
    if (shape === null) return writeText(text(object), bytes, at)
    shape.writer ??= generate(shape.names, other)
    return (shape.writer as ObjectWriter)(object, bytes, at)
  }

  let room = 256
  return (object, shape, body) => {
    const start = body.length
    body.reserve(room)
    for (;;) {
      const end = writeObject(object, shape, body.buffer as Bytes, start)
      if (end <= body.buffer.length) {
        body.length = end
        if (end - start > room) room = Math.min(end - start, mostRoom)
        return
      }
      body.reserve(end - start)
    }
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

function writeLong(value: string, bytes: Bytes, at: number): number {
  const end = at + value.length + 2
  if (end > bytes.length) return end
  // As many bytes as characters: all is ASCII, or the buffer is too short for what is not, which comes to light below.
  bytes[at] = 0x22
  if (bytes.utf8Write(value, at + 1) !== value.length) return writeText(JSON.stringify(value), bytes, at)
  let odd = 0
  for (let index = at + 1; index < end - 1; index++) odd |= special[bytes[index] as number] as number
  if (odd !== 0) return writeText(JSON.stringify(value), bytes, at)
  bytes[end - 1] = 0x22
  return end
}

/** Text in UTF-8 as a JSON string, with its quotes; what is not UTF-8 is replaced as decoders do. */
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

/** How the bytes below 128 that are special in a JSON string stand in one. */
const escapes = Array.from({ length: 128 }, (_, code) =>
  Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1)),
)

/** A text that is JSON already. */
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
  const most = at + length * 3 // the longest that UTF-8 makes of a UTF-16 unit
  return most > bytes.length ? Math.max(most, bytes.length + 1) : at + bytes.utf8Write(text, at)
}

function generate(
  names: readonly string[],
  other: (value: Value, bytes: Bytes, at: number, shared: Shared, index: number) => number,
): ObjectWriter {
  const code = names.map((name, index) => {
    const key = Buffer.from(`,${JSON.stringify(name)}:`)
    const constants = Array.from(key, (byte, place) => `b[at + ${place}] = ${byte}`).join('; ')
    return [
      `v = object[${JSON.stringify(name)}]`,
      'if (v !== undefined) {',
      `${constants}; at += ${key.length}`,
      `at = typeof v === 'string' ? string(v, b, at) : other(v, b, at, shared, ${index})`,
      '}',
    ].join('\n')
  })
  const body = [
    '"use strict"',
    'return function write(object, b, start) {',
    'let at = start, v',
    ...code,
    // The comma before the first member becomes the bracket.
    'b[start] = 123',
    'if (at === start) at++',
    'b[at] = 125',
    'return at + 1',
    '}',
  ].join('\n')
  const shared: Shared = {
    last: new Array(names.length).fill(undefined),
    bytes: new Array(names.length).fill(undefined),
  }
  return new Function('string', 'other', 'shared', body)(writeString, other, shared) as ObjectWriter
}
