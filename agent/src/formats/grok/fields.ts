// Builds the fields of a match as new objects.

import { parsePath } from '../../event/path.ts'
import { fieldNames, getField, isObject, setField, type Value, type ValueObject } from '../../event/value.ts'

/** Sets a value in objects created by this match; a second value creates an array. */
export function put(fields: ValueObject, path: readonly string[], value: Value): void {
  let old: Value | undefined = fields
  for (const name of path) old = old !== undefined && isObject(old) ? getField(old, name) : undefined
  write(fields, path, old === undefined ? value : Array.isArray(old) ? [...old, value] : [old, value])
}

function write(fields: ValueObject, path: readonly string[], value: Value): void {
  let object = fields
  for (const name of path.slice(0, -1)) {
    const inner = getField(object, name)
    if (inner !== undefined && isObject(inner)) {
      object = inner
    } else {
      const made: ValueObject = {}
      setField(object, name, made)
      object = made
    }
  }
  setField(object, path.at(-1) as string, value)
}

/** Converts keys to paths: `a.b` becomes a nested field. */
export function nested(value: Value): Value {
  if (Array.isArray(value)) return value.map(nested)
  if (!isObject(value)) return value
  const fields: ValueObject = {}
  for (const name of fieldNames(value)) {
    const path: readonly unknown[] = parsePath(`.${name}`)?.segments ?? []
    const names = path.filter((segment) => typeof segment === 'string')
    const whole = names.length > 0 && names.length === path.length ? names : [name]
    write(fields, whole, nested(value[name] as Value))
  }
  return fields
}

/** Removes nulls and empty objects. */
export function withoutEmpty(value: Value): Value {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (!isObject(value)) return value
  const fields: ValueObject = {}
  for (const name of fieldNames(value)) {
    const inner = withoutEmpty(value[name] as Value)
    if (inner !== null && !(isObject(inner) && fieldNames(inner).length === 0)) setField(fields, name, inner)
  }
  return fields
}
