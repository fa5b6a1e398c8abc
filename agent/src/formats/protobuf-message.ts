// Converts between protobuf messages and values, by the descriptors of compiled .proto files. Fields keep the names of
// the .proto file, unset fields are absent, and enum values are their names.

import { createRequire } from 'node:module'
import type * as protobuf from '@bufbuild/protobuf'
import type * as reflection from '@bufbuild/protobuf/reflect'
import type * as wellKnown from '@bufbuild/protobuf/wkt'
import { Timestamp } from '../event/timestamp.ts'
import {
  Bytes,
  Float,
  fieldNames,
  float,
  integer,
  isInteger,
  isObject,
  Regex,
  setField,
  stringFromBytes,
  type Value,
  type ValueObject,
} from '../event/value.ts'
import { floatText } from './json.ts'
import { parseBoolean, parseDecimal } from './number.ts'

const require = createRequire(import.meta.url)

export interface MessageFormat {
  read(data: Buffer): { readonly fields: ValueObject } | { readonly problem: string }
  /** @param textOfOthers whether numbers, booleans and timestamps are converted to text for a text field */
  write(value: Value, textOfOthers: boolean): { readonly data: Buffer } | { readonly problem: string }
}

/** A value that does not fit; its message gives the location. */
class Misfit extends Error {}

/**
 * The format of one message type of a descriptor set (the output of `protoc --descriptor_set_out`); an error message if
 * the type does not exist.
 */
export function compileMessage(descriptorSet: Buffer, type: string): MessageFormat | string {
  const { create, createFileRegistry, fromBinary, toBinary } = require('@bufbuild/protobuf') as typeof protobuf
  const { reflect } = require('@bufbuild/protobuf/reflect') as typeof reflection
  const { FileDescriptorSetSchema } = require('@bufbuild/protobuf/wkt') as typeof wellKnown
  let registry: protobuf.FileRegistry
  try {
    registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet))
  } catch (error) {
    return `it is not a complete set of descriptors (written with --include_imports): ${(error as Error).message}`
  }
  const descriptor = registry.getMessage(type)
  if (descriptor === undefined) {
    const known = [...registry].filter((entry) => entry.kind === 'message').map((entry) => entry.typeName)
    return `it has no message type ${type}, but ${known.slice(0, 10).join(', ')}`
  }
  const build = (of: protobuf.DescMessage): reflection.ReflectMessage => reflect(of, create(of))
  return {
    read(data) {
      try {
        return { fields: fieldsOf(reflect(descriptor, fromBinary(descriptor, data))) }
      } catch (error) {
        return { problem: (error as Error).message }
      }
    },
    write(value, textOfOthers) {
      try {
        if (!isObject(value)) throw new Misfit('the value is not an object')
        const message = filled(descriptor, value, { build, textOfOthers }, '')
        return { data: Buffer.from(toBinary(descriptor, message.message)) }
      } catch (error) {
        return { problem: (error as Error).message }
      }
    },
  }
}

function fieldsOf(message: reflection.ReflectMessage): ValueObject {
  const fields: ValueObject = {}
  for (const field of message.sortedFields) {
    if (!message.isSet(field)) continue
    const value: unknown = message.get(field)
    switch (field.fieldKind) {
      case 'list': {
        const items: Value[] = []
        for (const item of value as Iterable<unknown>) items.push(read(field.listKind, item, field))
        setField(fields, field.name, items)
        break
      }
      case 'map': {
        const entries: ValueObject = {}
        for (const [key, entry] of value as Iterable<[unknown, unknown]>) {
          setField(entries, String(key), read(field.mapKind, entry, field))
        }
        setField(fields, field.name, entries)
        break
      }
      default:
        setField(fields, field.name, read(field.fieldKind, value, field))
    }
  }
  return fields
}

function read(kind: 'scalar' | 'enum' | 'message', value: unknown, field: protobuf.DescField): Value {
  if (kind === 'message') return readMessage(value as reflection.ReflectMessage)
  if (kind === 'enum') return field.enum?.value[value as number]?.name ?? (value as number)
  if (typeof value === 'bigint') return integer(BigInt.asIntN(64, value))
  if (value instanceof Uint8Array) return stringFromBytes(Buffer.from(value))
  if (typeof value === 'number') {
    if (!isFloatType(field)) return value
    return Number.isNaN(value) ? null : float(value)
  }
  return value as string | boolean
}

function readMessage(message: reflection.ReflectMessage): Value {
  if (message.desc.typeName !== timestampType) return fieldsOf(message)
  const { seconds, nanos } = message.message as unknown as { seconds: bigint; nanos: number }
  return Timestamp.fromNanoseconds(seconds * 1_000_000_000n + BigInt(nanos))
}

const timestampType = 'google.protobuf.Timestamp'
// Type numbers in descriptors.
const DOUBLE = 1
const FLOAT = 2
const INT64 = 3
const BOOL = 8
const STRING = 9
const BYTES = 12
const LONGS = new Set([3, 4, 6, 16, 18])

function isFloatType(field: protobuf.DescField): boolean {
  return field.scalar === (DOUBLE as number) || field.scalar === (FLOAT as number)
}

interface Writing {
  build(of: protobuf.DescMessage): reflection.ReflectMessage
  readonly textOfOthers: boolean
}

function filled(
  descriptor: protobuf.DescMessage,
  value: ValueObject,
  writing: Writing,
  at: string,
): reflection.ReflectMessage {
  const message = writing.build(descriptor)
  for (const field of descriptor.fields) {
    const given = Object.hasOwn(value, field.name) ? value[field.name] : undefined
    if (given === undefined || given === null) continue
    const path = at === '' ? field.name : `${at}.${field.name}`
    switch (field.fieldKind) {
      case 'list': {
        if (!Array.isArray(given)) throw new Misfit(`${path} is not an array`)
        const list = message.get(field) as reflection.ReflectList
        given.forEach((item, index) => {
          const made = write(field.listKind, item, field, writing, `${path}[${index}]`)
          fit(`${path}[${index}]`, () => list.add(made))
        })
        break
      }
      case 'map': {
        if (!isObject(given)) throw new Misfit(`${path} is not an object`)
        const map = message.get(field) as reflection.ReflectMap
        for (const name of fieldNames(given)) {
          const entry = write(field.mapKind, given[name] as Value, field, writing, `${path}.${name}`)
          fit(`${path}.${name}`, () => map.set(mapKey(name, field.mapKey, path), entry))
        }
        break
      }
      default: {
        const made = write(field.fieldKind, given, field, writing, path)
        fit(path, () => message.set(field, made))
      }
    }
  }
  return message
}

/** The library rejects out-of-range numbers by throwing. */
function fit(path: string, put: () => unknown): void {
  try {
    put()
  } catch (error) {
    throw new Misfit(`${path} does not fit: ${(error as Error).message}`)
  }
}

function mapKey(name: string, type: number, path: string): string | number | bigint | boolean {
  if (type === STRING) return name
  if (type === BOOL && /^(?:true|false)$/.test(name)) return name === 'true'
  if (type !== BOOL && /^-?\d+$/.test(name)) return LONGS.has(type) ? BigInt(name) : Number(name)
  throw new Misfit(`the key ${name} of ${path} does not fit`)
}

function write(
  kind: 'scalar' | 'enum' | 'message',
  value: Value,
  field: protobuf.DescField,
  writing: Writing,
  path: string,
): unknown {
  if (kind === 'message') return writeMessage(value, field.message as protobuf.DescMessage, writing, path)
  if (kind === 'enum') return enumNumber(value, field.enum as protobuf.DescEnum, path)
  const type: number = field.scalar as number
  switch (type) {
    case BYTES:
      if (value instanceof Bytes) return Uint8Array.from(value.bytes)
      if (typeof value === 'string') return Uint8Array.from(Buffer.from(value))
      if (value instanceof Regex) return Uint8Array.from(Buffer.from(value.source))
      break
    case STRING: {
      const text = textOf(value, writing.textOfOthers)
      if (text !== undefined) return text
      break
    }
    case BOOL: {
      if (typeof value === 'boolean') return value
      if (isInteger(value)) return Number(value) !== 0
      const truth = typeof value === 'string' ? parseBoolean(value) : undefined
      if (truth !== undefined) return truth
      break
    }
    case DOUBLE:
    case FLOAT: {
      if (typeof value === 'number' || typeof value === 'bigint') return Number(value)
      if (value instanceof Float) return value.value
      const decimal = typeof value === 'string' ? parseDecimal(value) : undefined
      if (decimal !== undefined) return decimal
      break
    }
    default:
      if (typeof value === 'string' && /^[+-]?\d+$/.test(value)) {
        return LONGS.has(type) ? BigInt(value.replace('+', '')) : Number(value)
      }
      if (value instanceof Timestamp && type === INT64) return value.toNanoseconds() / 1000n
      if (typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))) {
        return LONGS.has(type) ? BigInt(value) : Number(value)
      }
  }
  throw new Misfit(`${path} is of another type`)
}

function writeMessage(value: Value, descriptor: protobuf.DescMessage, writing: Writing, path: string): unknown {
  if (value instanceof Timestamp && descriptor.typeName === timestampType) {
    const message = writing.build(descriptor)
    const nanoseconds = value.toNanoseconds()
    const nanos = ((nanoseconds % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n
    const [seconds, nanosOfSecond] = descriptor.fields as [protobuf.DescField, protobuf.DescField]
    message.set(seconds, (nanoseconds - nanos) / 1_000_000_000n)
    message.set(nanosOfSecond, Number(nanos))
    return message
  }
  if (!isObject(value)) throw new Misfit(`${path} is not an object`)
  return filled(descriptor, value, writing, path)
}

function enumNumber(value: Value, descriptor: protobuf.DescEnum, path: string): number {
  if (typeof value === 'number' && Number.isInteger(value)) return value
  const wanted = typeof value === 'string' ? value.toUpperCase() : undefined
  const known = descriptor.values.find((entry) => entry.name.toUpperCase() === wanted)
  if (known === undefined) throw new Misfit(`${path} is not a value of the enum ${descriptor.typeName}`)
  return known.number
}

function textOf(value: Value, ofOthers: boolean): string | undefined {
  if (typeof value === 'string') return value
  if (value instanceof Bytes) return value.toString()
  if (value instanceof Regex) return value.source
  if (!ofOthers) return undefined
  if (typeof value === 'number') return floatText(value)
  if (value instanceof Float) return floatText(value.value)
  if (typeof value === 'bigint' || typeof value === 'boolean' || value instanceof Timestamp) return String(value)
  return undefined
}
