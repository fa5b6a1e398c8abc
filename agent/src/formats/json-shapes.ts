// JSON text of objects at the speed of the platform's own writer, which knows no order of keys and none of our boxes. Objects
// with the same sequence of keys share a shape: code generated once that copies the members in the order of encoders and turns
// what the platform cannot write into what it can. The copy then goes through `JSON.stringify` in one piece.
// Nested objects that many events share, such as the metadata of a pod, are recognised by identity and written once.

import { type Shape, shapeOf } from '../event/shape.ts'
import { Timestamp } from '../event/timestamp.ts'
import { sortedFieldNames, type Value, type ValueObject } from '../event/value.ts'

/** Writes a value the plain way; given by the caller, which owns the rules. */
export type WriteValue = (value: Value) => string

/** What stands for a value in the copy: the value itself, or a text that goes out unquoted. */
type Plain = unknown

interface Writer {
  /** Copies the members in order. */
  readonly copy: (object: ValueObject, plain: (value: Value | undefined) => Plain) => object
  /** Position of a nested object that the last object of this shape had too, or -1; remembers the others. */
  readonly find: (object: ValueObject, last: Writer['last'], remember: (index: number, value: object) => void) => number
  readonly remember: (index: number, value: object) => void
  readonly names: readonly string[]
  /** Objects in a row that shared nothing with the one before. */
  fruitless: number
  readonly last: (object | undefined)[]
  readonly text: (string | undefined)[]
}

/** After so many fruitless looks for shared members none is taken, until so many objects have passed. */
const giveUp = 64
const lookAgain = 4096

const rawJson = (JSON as unknown as { rawJSON(text: string): object }).rawJSON

/** Makes a writer of objects that falls back to `write` for what it cannot do. */
export function compileObjectWriter(write: WriteValue): (object: ValueObject, shape: Shape | null) => string {
  const plain = (value: Value | undefined): Plain => {
    switch (typeof value) {
      case 'number':
        // Small fractions: the platform shows the exponent later than we do.
        return value < 1e-5 && value > -1e-5 && value !== 0 ? rawJson(write(value)) : value
      case 'bigint':
        return rawJson(write(value))
      case 'object':
        if (value === null) return null
        if (value instanceof Timestamp) return value.toString()
        if (Array.isArray(value)) return plainArray(value)
        if (isPlainObject(value)) {
          const shape = shapeOf(value)
          return shape === null ? plainObject(value) : writerOf(shape).copy(value, plain)
        }
        return primitive(write(value))
      default:
        return value
    }
  }
  /** Member by member, in order; keys that the platform would order by itself cannot go this way. */
  const plainObject = (object: ValueObject): Plain => {
    const copy: Record<string, Plain> = {}
    for (const name of sortedFieldNames(object)) {
      if (name === '__proto__' || isIndex.test(name)) throw notPlain
      copy[name] = plain(object[name])
    }
    return copy
  }
  const plainArray = (items: readonly Value[]): Plain[] => {
    const copy = new Array<Plain>(items.length)
    for (let index = 0; index < items.length; index++) copy[index] = plain(items[index])
    return copy
  }
  /** Boxes become text already: strings are kept as such, numbers are passed on as they are. */
  const primitive = (text: string): Plain => (text.charCodeAt(0) === 0x22 ? JSON.parse(text) : rawJson(text))

  /** Writes in parts around members that are shared between events. */
  const writeAround = (object: ValueObject, writer: Writer, shared: number): string => {
    let text = ''
    let part: Record<string, Plain> = {}
    let inPart = 0
    const flush = (): void => {
      if (inPart === 0) return
      const written = JSON.stringify(part)
      if (written.length > 2) text += (text === '' ? '' : ',') + written.slice(1, -1)
      part = {}
      inPart = 0
    }
    const { names, last } = writer
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string
      const value = object[name]
      if (value === undefined) continue
      if (index >= shared && typeof value === 'object' && value === last[index]) {
        flush()
        let member = writer.text[index]
        if (member === undefined) {
          member = `${JSON.stringify(name)}:${write(value as Value)}`
          writer.text[index] = member
        }
        text += (text === '' ? '' : ',') + member
      } else {
        part[name] = plain(value)
        inPart++
        if (typeof value === 'object' && value !== null && value !== last[index]) writer.remember(index, value)
      }
    }
    flush()
    return `{${text}}`
  }

  return (object, shape) => {
    if (shape === null) return write(object)
    const writer = writerOf(shape)
    const shared = writer.fruitless < giveUp ? writer.find(object, writer.last, writer.remember) : -1
    try {
      if (shared >= 0) writer.fruitless = 0
      else writer.fruitless = writer.fruitless < lookAgain ? writer.fruitless + 1 : 0
      return shared < 0 ? JSON.stringify(writer.copy(object, plain)) : writeAround(object, writer, shared)
    } catch (error) {
      if (error === notPlain) return write(object)
      throw error
    }
  }
}

/** Thrown, without a stack, where a nested object turns out to need the plain way. Rare: it costs the work done so far. */
const notPlain = Symbol('not plain')

const isIndex = /^(?:0|[1-9]\d{0,9})$/

function isPlainObject(value: object): value is ValueObject {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function writerOf(shape: Shape): Writer {
  shape.writer ??= compileWriter(shape.names)
  return shape.writer as Writer
}

function compileWriter(names: readonly string[]): Writer {
  const last: Writer['last'] = new Array(names.length).fill(undefined)
  const text: Writer['text'] = new Array(names.length).fill(undefined)
  const keys = names.map((name) => JSON.stringify(name))
  // In brackets, `__proto__` is a key like any other.
  const members = keys.map((key) => {
    const name = key === '"__proto__"' ? `[${key}]` : key
    return `${name}: typeof (value = object[${key}]) === 'string' ? value : plain(value)`
  })
  const looks = keys.map(
    (key, index) =>
      `value = object[${key}]; if (typeof value === 'object' && value !== null) { if (value === last[${index}]) return ${index}; remember(${index}, value) }`,
  )
  return {
    copy: new Function('object', 'plain', `let value; return {${members.join(',')}}`) as Writer['copy'],
    find: new Function('object', 'last', 'remember', `let value; ${looks.join('\n')} return -1`) as Writer['find'],
    remember(index, value) {
      if (!isPlainObject(value)) return
      last[index] = value
      text[index] = undefined
    },
    names,
    fruitless: 0,
    last,
    text,
  }
}
