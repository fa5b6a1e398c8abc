// Describes a value as a text that differs for any two different values, and marks violations of the rules for values.

import { Timestamp } from '../event/timestamp.ts'
import { Bytes, compareKeys, Float, isObject, Regex, type Value } from '../event/value.ts'

/** The value with its types. Equal texts mean equal values. `INVALID` marks violations of the rules for values. */
export function described(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `${value.isWellFormed() ? '' : 'INVALID lone surrogate in '}${JSON.stringify(value)}`
    case 'boolean':
      return String(value)
    case 'bigint': {
      const small = value >= -9007199254740991n && value <= 9007199254740991n
      const wide = BigInt.asIntN(64, value) !== value
      return `${small ? 'INVALID small bigint ' : wide ? 'INVALID wide bigint ' : ''}${value}`
    }
    case 'number':
      if (Number.isNaN(value)) return 'INVALID NaN'
      if (Number.isInteger(value)) return `${Number.isSafeInteger(value) ? '' : 'INVALID unsafe integer '}${value}`
      return `float ${value}`
    case 'object':
      return describedObject(value)
    default:
      return `INVALID ${typeof value}`
  }
}

function describedObject(value: object | null): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${Array.from(value, described).join(', ')}]`
  if (value instanceof Float) {
    return `${Number.isInteger(value.value) ? '' : 'INVALID box '}float ${Object.is(value.value, -0) ? '-0' : value.value}`
  }
  if (value instanceof Timestamp) {
    const sound = Number.isInteger(value.ms) && Number.isInteger(value.ns) && value.ns >= 0 && value.ns < 1_000_000
    return `${sound ? '' : 'INVALID '}timestamp ${value.ms} ${value.ns}`
  }
  if (value instanceof Bytes) {
    const sound = !Buffer.from(value.bytes.toString('utf8')).equals(value.bytes)
    return `${sound ? '' : 'INVALID UTF-8 as '}bytes ${value.bytes.toString('hex')}`
  }
  if (value instanceof Regex) return `regex ${JSON.stringify(value.source)}`
  if (!isObject(value as Value)) return `INVALID ${value.constructor?.name}`
  const fields: string[] = []
  for (const name of Object.keys(value).sort(compareKeys)) {
    const field = (value as Record<string, unknown>)[name]
    if (field !== undefined) fields.push(`${described(name)}: ${described(field)}`)
  }
  return `{${fields.join(', ')}}`
}

/** Freezes all nested values, and with `root` also the value itself. */
export function freeze(value: Value, root: boolean): void {
  if (typeof value !== 'object' || value === null || value instanceof Regex) return
  if (!(value instanceof Bytes || value instanceof Float || value instanceof Timestamp)) {
    for (const item of Array.isArray(value) ? value : Object.values(value)) {
      if (item !== undefined) freeze(item, true)
    }
  }
  if (root) Object.freeze(value)
}
