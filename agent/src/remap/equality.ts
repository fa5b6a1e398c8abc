// Equality of values inside collections: same type and same content, so 1 and 1.0 differ.

import { Timestamp } from '../event/timestamp.ts'
import { Bytes, Float, fieldNames, getField, Regex, type Value, type ValueObject } from '../event/value.ts'

export function sameValue(left: Value, right: Value): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false
    for (let index = 0; index < left.length; index++) {
      if (!sameValue(left[index] as Value, right[index] as Value)) return false
    }
    return true
  }
  if (Array.isArray(right)) return false
  if (left instanceof Float) return right instanceof Float && left.value === right.value
  if (left instanceof Timestamp) return right instanceof Timestamp && left.equals(right)
  if (left instanceof Bytes) return right instanceof Bytes && left.bytes.equals(right.bytes)
  if (left instanceof Regex) return right instanceof Regex && left.source === right.source
  if (right instanceof Float || right instanceof Timestamp || right instanceof Bytes || right instanceof Regex)
    return false
  return sameFields(left, right)
}

function sameFields(left: ValueObject, right: ValueObject): boolean {
  const names = fieldNames(left)
  if (names.length !== fieldNames(right).length) return false
  for (const name of names) {
    const other = getField(right, name)
    if (other === undefined || !sameValue(left[name] as Value, other)) return false
  }
  return true
}
