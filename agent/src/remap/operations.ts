// Operators at run time. Results are values or failures; the fast paths for plain numbers and strings come first.

import { Timestamp } from '../event/timestamp.ts'
import { Bytes, compareKeys, Float, fieldNames, float, getField, integer, Regex, type Value } from '../event/value.ts'
import { failure, type RemapError, type Result } from './function.ts'
import { textOfKind } from './text.ts'

function isInt(value: Value): value is number | bigint {
  return typeof value === 'number' ? Number.isInteger(value) : typeof value === 'bigint'
}

/** A number as a double; undefined for any other value. */
function asDouble(value: Value): number | undefined {
  if (typeof value === 'number') return value
  if (value instanceof Float) return value.value
  return typeof value === 'bigint' ? Number(value) : undefined
}

function fromDouble(value: number): Result {
  return Number.isNaN(value) ? failure('operation would produce NaN') : float(value)
}

export function isText(value: Value): value is string | Bytes {
  return typeof value === 'string' || value instanceof Bytes
}

function bytesOf(value: string | Bytes): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : value.bytes
}

function wrapped(value: bigint): number | bigint {
  return integer(BigInt.asIntN(64, value))
}

export function add(left: Value, right: Value): Result {
  if (typeof left === 'number' && typeof right === 'number') {
    const sum = left + right
    if (Number.isInteger(left) && Number.isInteger(right)) {
      return Number.isSafeInteger(sum) ? sum : wrapped(BigInt(left) + BigInt(right))
    }
    return fromDouble(sum)
  }
  if (typeof left === 'string' && typeof right === 'string') return left + right
  if (isInt(left) && isInt(right)) return wrapped(BigInt(left) + BigInt(right))
  const a = asDouble(left)
  const b = asDouble(right)
  if (a !== undefined && b !== undefined) return fromDouble(a + b)
  if (isText(left)) {
    if (isText(right)) return new Bytes(Buffer.concat([bytesOf(left), bytesOf(right)]))
    if (right === null) return left
  } else if (left === null && isText(right)) return right
  return failure(`can't add type ${textOfKind(right)} to ${textOfKind(left)}`)
}

export function subtract(left: Value, right: Value): Result {
  if (isInt(left) && isInt(right)) {
    if (typeof left === 'number' && typeof right === 'number') {
      const difference = left - right
      if (Number.isSafeInteger(difference)) return difference
    }
    return wrapped(BigInt(left) - BigInt(right))
  }
  const a = asDouble(left)
  const b = asDouble(right)
  if (a !== undefined && b !== undefined) return fromDouble(a - b)
  return failure(`can't subtract type ${textOfKind(right)} from ${textOfKind(left)}`)
}

export function multiply(left: Value, right: Value): Result {
  if (isInt(left) && isInt(right)) {
    if (typeof left === 'number' && typeof right === 'number') {
      const product = left * right
      if (Number.isSafeInteger(product)) return product + 0
    }
    return wrapped(BigInt(left) * BigInt(right))
  }
  const a = asDouble(left)
  const b = asDouble(right)
  if (a !== undefined && b !== undefined) return fromDouble(a * b)
  if (isText(left) && isInt(right)) return repeated(left, right)
  if (isInt(left) && isText(right)) return repeated(right, left)
  return failure(`can't multiply type ${textOfKind(left)} by ${textOfKind(right)}`)
}

function repeated(text: string | Bytes, count: number | bigint): Result {
  const times = Number(count)
  if (times <= 0) return ''
  if ((typeof text === 'string' ? text.length : text.bytes.length) * times > 0x1fffffe8) {
    return failure('the repeated string would be too long')
  }
  if (typeof text === 'string') return text.repeat(times)
  return new Bytes(Buffer.concat(Array.from({ length: times }, () => text.bytes)))
}

export function divide(left: Value, right: Value): Result {
  const b = asDouble(right)
  if (b === 0) return failure("can't divide by zero")
  const a = asDouble(left)
  if (a !== undefined && b !== undefined) return fromDouble(a / b)
  return failure(`can't divide type ${textOfKind(left)} by ${textOfKind(right)}`)
}

/** Equality of the language: numbers at the top level are compared as floats, whether or not they are integers. */
export function equals(left: Value, right: Value): boolean {
  if (left === right) return true
  if (typeof left === 'string') return false
  const a = asDouble(left)
  if (a !== undefined) {
    return a === asDouble(right)
  }
  return strictEquals(left, right)
}

/** Same type and same content, recursively. */
export function strictEquals(left: Value | undefined, right: Value | undefined): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((item, index) => strictEquals(item, right[index]))
    )
  }
  if (left instanceof Float) return right instanceof Float && left.value === right.value
  if (left instanceof Timestamp) return right instanceof Timestamp && left.equals(right)
  if (left instanceof Bytes) return right instanceof Bytes && left.bytes.equals(right.bytes)
  if (left instanceof Regex) return right instanceof Regex && left.source === right.source
  if (
    Array.isArray(right) ||
    right instanceof Float ||
    right instanceof Timestamp ||
    right instanceof Bytes ||
    right instanceof Regex
  ) {
    return false
  }
  const names = fieldNames(left)
  if (names.length !== fieldNames(right).length) return false
  return names.every((name) => strictEquals(getField(left, name), getField(right, name)))
}

/** Compares two comparable values; a failure for others. */
function order(left: Value, right: Value, operator: string): number | RemapError {
  const a = asDouble(left)
  const b = asDouble(right)
  if (a !== undefined && b !== undefined) {
    if (isInt(left) && isInt(right)) return left < right ? -1 : left > right ? 1 : 0
    return Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : a - b === 0 || a === b ? 0 : a < b ? -1 : 1
  }
  if (isText(left)) {
    if (!isText(right)) return failure(`expected string, got ${textOfKind(right)}`)
    if (typeof left === 'string' && typeof right === 'string') return compareKeys(left, right)
    return Buffer.compare(bytesOf(left), bytesOf(right))
  }
  if (left instanceof Timestamp) {
    if (!(right instanceof Timestamp)) return failure(`expected timestamp, got ${textOfKind(right)}`)
    return left.compare(right)
  }
  return operator === '>'
    ? failure(`can't calculate remainder of type ${textOfKind(left)} and ${textOfKind(right)}`)
    : failure(`can't compare ${textOfKind(left)} >= ${textOfKind(right)}`)
}

export function less(left: Value, right: Value): Result {
  if (typeof left === 'number' && typeof right === 'number') return left < right
  const sign = order(left, right, '<')
  return typeof sign === 'number' ? sign < 0 : sign
}

export function lessOrEqual(left: Value, right: Value): Result {
  if (typeof left === 'number' && typeof right === 'number') return left <= right
  const sign = order(left, right, '<=')
  return typeof sign === 'number' ? sign <= 0 : sign
}

export function greater(left: Value, right: Value): Result {
  if (typeof left === 'number' && typeof right === 'number') return left > right
  const sign = order(left, right, '>')
  return typeof sign === 'number' ? sign > 0 : sign
}

export function greaterOrEqual(left: Value, right: Value): Result {
  if (typeof left === 'number' && typeof right === 'number') return left >= right
  const sign = order(left, right, '>=')
  return typeof sign === 'number' ? sign >= 0 : sign
}

/** The failure of `&&` for types other than boolean and null. */
export function invalidAnd(left: Value, right: Value): RemapError {
  return failure(`can't apply an AND to types ${textOfKind(left)} and ${textOfKind(right)}`)
}
