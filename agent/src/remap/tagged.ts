// Values as JSON that preserves their types, for `--typed` on the command line and for conformance cases. Plain JSON values are
// unchanged; `$float`, `$int`, `$timestamp`, `$regex`, `$bytes` and `$object` tag the others.

import { Timestamp } from '../event/timestamp.ts'
import {
  Bytes,
  Float,
  fieldNames,
  float,
  integer,
  Regex,
  setField,
  type Value,
  type ValueObject,
} from '../event/value.ts'
import { floatText, jsonFloat } from '../formats/json.ts'
import { compileRegex } from './regex.ts'
import { parseTimestampLiteral } from './timestamp-literal.ts'

export type Tagged = null | boolean | number | string | Tagged[] | { [key: string]: Tagged }

/** A value from its tagged form. */
export function fromTagged(tagged: Tagged): Value {
  if (tagged === null || typeof tagged !== 'object') return tagged
  if (Array.isArray(tagged)) return tagged.map(fromTagged)
  const keys = Object.keys(tagged)
  const key = keys[0]
  const content = key === undefined ? undefined : tagged[key]
  if (keys.length === 1 && key?.startsWith('$')) {
    switch (key) {
      case '$float':
        return float(Number(String(content).replace('inf', 'Infinity')))
      case '$int':
        return integer(BigInt(content as string))
      case '$timestamp':
        return parseTimestampLiteral(content as string) as Timestamp
      case '$regex': {
        const regex = compileRegex(content as string)
        if (regex instanceof Regex) return regex
        break
      }
      case '$bytes':
        return new Bytes(Buffer.from(content as string, 'hex'))
      case '$object':
        return objectFrom(content as { [key: string]: Tagged })
    }
  }
  return objectFrom(tagged)
}

function objectFrom(fields: { [key: string]: Tagged }): ValueObject {
  const object: ValueObject = {}
  for (const name of Object.keys(fields)) setField(object, name, fromTagged(fields[name] as Tagged))
  return object
}

/** The tagged form of a value. */
export function toTagged(value: Value): Tagged {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Number.isInteger(value) ? value : { $float: floatTag(value) }
    case 'bigint':
      return { $int: value.toString() }
  }
  if (value === null) return null
  if (Array.isArray(value)) return value.map(toTagged)
  if (value instanceof Timestamp) return { $timestamp: value.toString() }
  if (value instanceof Float) return { $float: floatTag(value.value) }
  if (value instanceof Bytes) return { $bytes: value.bytes.toString('hex') }
  if (value instanceof Regex) return { $regex: value.source }
  const object: { [key: string]: Tagged } = {}
  let escaped = false
  for (const name of fieldNames(value).sort()) {
    if (name.startsWith('$')) escaped = true
    const field = toTagged(value[name] as Value)
    Object.defineProperty(object, name, { value: field, writable: true, enumerable: true, configurable: true })
  }
  return escaped ? { $object: object } : object
}

function floatTag(value: number): string {
  return Number.isFinite(value) ? jsonFloat(value) : floatText(value)
}
