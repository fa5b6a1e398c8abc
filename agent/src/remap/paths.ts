// Paths at run time, for forms that generated code does not inline.

import { getValue, type PathSegment, without, written } from '../event/path.ts'
import { copyObject, isObject, type Value, type ValueObject } from '../event/value.ts'
import { failure, type Result } from './function.ts'
import { textOfKind } from './text.ts'

/** The root as an object that may be changed in place; other values are replaced by an object. */
export function ownedObject(root: Value, own: boolean): ValueObject {
  if (!isObject(root)) return {}
  return own ? root : copyObject(root)
}

/** A copy without the value at the path; the same value if the path does not exist. */
export function removedBelow(target: Value, segments: readonly PathSegment[], compact: boolean): Value {
  if (segments.length === 0) return Array.isArray(target) ? [] : isObject(target) ? {} : null
  if (getValue(target, segments) === undefined) return target
  return without(target, segments, 0, compact) ?? (Array.isArray(target) ? [] : {})
}

/** One copy of the target for each item of the array at the path. */
export function unnest(target: Value, segments: readonly PathSegment[]): Result {
  const items = getValue(target, segments) ?? null
  if (!Array.isArray(items)) return failure(`expected array, got ${textOfKind(items)}`)
  const around = removedBelow(target, segments, true)
  return items.map((item) => written(around, segments, 0, item))
}
