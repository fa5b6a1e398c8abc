// Codec `avro`: writes a log event as the bare datum of a schema, without container header or registry prefix.
// The library is loaded only when a sink uses the codec.

import { createRequire } from 'node:module'
import type * as avsc from 'avsc'
import { errorText, PenstockError } from '../../errors.ts'
import type { Body } from '../../event/body.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { Bytes, Float, getField, isObject, Regex, type Value, type ValueObject } from '../../event/value.ts'

const require = createRequire(import.meta.url)

export interface AvroWriter {
  /** Writes the datum. Returns a message if the event does not match the schema. */
  write(fields: ValueObject, body: Body): string | undefined
}

/** Compiles a JSON schema; throws a PenstockError if it is invalid. */
export function compileAvro(schema: string): AvroWriter {
  const { Type, types } = require('avsc') as typeof avsc
  let type: avsc.Type
  try {
    type = Type.forSchema(JSON.parse(schema), {
      wrapUnions: true,
      registry: { long: int64(types.LongType) },
    })
  } catch (error) {
    throw new PenstockError('PEN_CONFIG_INVALID', `Failed building Avro serializer: ${errorText(error)}`, {
      cause: error,
    })
  }
  return {
    write(fields, body) {
      try {
        const datum = shaped(type, fields, '')
        body.reserve(256)
        const end = encodeAt(type, datum, body)
        if (end < 0) {
          // The buffer was too small: the library returns the number of missing bytes as a negative number.
          body.reserve(body.buffer.length - body.length - end)
          encodeAt(type, datum, body)
        }
        return undefined
      } catch (error) {
        return `The event does not match the Avro schema: ${errorText(error)}`
      }
    },
  }
}

function encodeAt(type: avsc.Type, datum: unknown, body: Body): number {
  const end = type.encode(datum, body.buffer, body.length)
  if (end >= 0) body.length = end
  return end
}

/** Longs with all 64 bits, as bigint. */
function int64(longType: typeof avsc.types.LongType): avsc.Type {
  return longType.__with({
    fromBuffer: (bytes: Buffer) => bytes.readBigInt64LE(),
    toBuffer: (value: bigint) => {
      const bytes = Buffer.alloc(8)
      bytes.writeBigInt64LE(value)
      return bytes
    },
    fromJSON: (value: number | string) => BigInt(value),
    toJSON: (value: bigint) => Number(value),
    isValid: (value: unknown) => typeof value === 'bigint' && BigInt.asIntN(64, value) === value,
    compare: (left: bigint, right: bigint) => (left < right ? -1 : left > right ? 1 : 0),
  })
}

class Misfit extends Error {}

/** Converts a value to the form that the library expects for a type; throws a `Misfit` if this is impossible. */
function shaped(type: avsc.Type, value: Value | undefined, path: string): unknown {
  const misfit = () => new Misfit(`${path === '' ? 'the event' : path} is not a valid ${type.typeName}`)
  switch (type.typeName) {
    case 'null':
      if (value === null || value === undefined) return null
      throw misfit()
    case 'boolean':
      if (typeof value === 'boolean') return value
      throw misfit()
    case 'int':
      if (typeof value === 'number' && (value | 0) === value) return value
      throw misfit()
    case 'long':
    case 'abstract:long':
      if (typeof value === 'bigint') return value
      if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value)
      if (value instanceof Timestamp) return BigInt(value.ms)
      throw misfit()
    case 'float':
    case 'double':
      if (typeof value === 'number') return value
      if (typeof value === 'bigint') return Number(value)
      if (value instanceof Float) return value.value
      throw misfit()
    case 'string':
    case 'bytes':
    case 'fixed':
    case 'enum': {
      const text = textOf(value)
      if (text === undefined) throw misfit()
      if (type.typeName === 'bytes' || type.typeName === 'fixed') {
        const bytes = typeof text === 'string' ? Buffer.from(text) : text.bytes
        if (type.typeName === 'fixed' && !type.isValid(bytes)) throw misfit()
        return bytes
      }
      if (type.typeName === 'enum' && !type.isValid(String(text))) throw misfit()
      return String(text)
    }
    case 'array': {
      if (!Array.isArray(value)) throw misfit()
      const items = (type as avsc.types.ArrayType).itemsType
      return value.map((item, index) => shaped(items, item, `${path}[${index}]`))
    }
    case 'map': {
      if (!isObject(value)) throw misfit()
      const result: Record<string, unknown> = {}
      const values = (type as avsc.types.MapType).valuesType
      for (const [name, item] of Object.entries(value)) {
        if (item !== undefined) result[name] = shaped(values, item, `${path}.${name}`)
      }
      return result
    }
    case 'record': {
      if (!isObject(value)) throw misfit()
      const result: Record<string, unknown> = {}
      for (const field of (type as avsc.types.RecordType).fields) {
        const item = getField(value, field.name)
        // The schema may have a default for a missing field.
        if (item === undefined && field.defaultValue() !== undefined) result[field.name] = field.defaultValue()
        else result[field.name] = shaped(field.type, item, `${path}.${field.name}`)
      }
      return result
    }
    case 'union:wrapped':
      return branch(type as avsc.types.WrappedUnionType, value, path)
    default:
      if (type.typeName.startsWith('logical:')) {
        return shaped((type as avsc.types.LogicalType).underlyingType, value, path)
      }
      throw misfit()
  }
}

function branch(union: avsc.types.WrappedUnionType, value: Value | undefined, path: string): unknown {
  let misfit: unknown
  for (const type of union.types) {
    try {
      const inner = shaped(type, value, path)
      return inner === null ? null : { [type.branchName as string]: inner }
    } catch (error) {
      misfit = error
    }
  }
  throw misfit
}

function textOf(value: Value | undefined): string | Bytes | undefined {
  if (typeof value === 'string' || value instanceof Bytes) return value
  if (value instanceof Timestamp) return value.toString()
  return value instanceof Regex ? value.source : undefined
}
