// Paths to fields as users write them in options and templates: `.a.b`, `a.b`, `a."b c"[0]`, `%meta.x`.

import type { LogEvent } from './log.ts'
import { copyObject, getField, isObject, setField, type Value, type ValueObject } from './value.ts'

export type PathSegment = string | number

/** Maximum absolute value of an index. It is limited because writing to an index fills the array up to it. */
export const maxIndex = 65_535

export interface Path {
  /** Whether the path starts in the event or in its metadata. */
  readonly root: 'event' | 'metadata'
  /** Names of fields, and indexes of array items (negative indexes count from the end). Empty for the root itself. */
  readonly segments: readonly PathSegment[]
}

/** Parses a path that a user wrote; undefined if it is not valid. */
export function parsePath(text: string): Path | undefined {
  let at = 0
  let root: Path['root'] = 'event'
  if (text[0] === '%') {
    root = 'metadata'
    at = 1
  } else if (text[0] === '.') {
    at = 1
  }
  const segments: PathSegment[] = []
  if (at === text.length) return at === 0 ? undefined : { root, segments }
  const word = /[A-Za-z0-9_@-]+/y
  const index = /\[(-?\d+)\]/y
  let first = true
  while (at < text.length) {
    index.lastIndex = at
    const item = index.exec(text)
    if (item !== null) {
      const position = Number(item[1])
      if (Math.abs(position) > maxIndex) return undefined
      segments.push(position)
      at = index.lastIndex
      first = false
      continue
    }
    if (!first) {
      if (text[at] !== '.') return undefined
      at++
    }
    first = false
    if (text[at] === '"') {
      const end = closingQuote(text, at + 1)
      if (end < 0) return undefined
      segments.push(text.slice(at + 1, end).replace(/\\(.)/gs, '$1'))
      at = end + 1
      continue
    }
    word.lastIndex = at
    const name = word.exec(text)
    if (name === null) return undefined
    segments.push(name[0])
    at = word.lastIndex
  }
  return { root, segments }
}

function closingQuote(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at
  }
  return -1
}

/** A path as text, with a leading dot, and with quotes only if needed. */
export function pathText(path: Path): string {
  let text = path.root === 'metadata' ? '%' : '.'
  for (const segment of path.segments) {
    if (typeof segment === 'number') {
      text += `[${segment}]`
      continue
    }
    if (text.length > 1) text += '.'
    text += /^[A-Za-z0-9_@]+$/.test(segment) ? segment : `"${segment.replace(/["\\]/g, '\\$&')}"`
  }
  return text
}

/** The value at a path below an object; undefined if there is none. */
export function getValue(root: Value, segments: readonly PathSegment[]): Value | undefined {
  let value: Value | undefined = root
  for (let index = 0; index < segments.length; index++) {
    const segment = segments[index] as PathSegment
    if (typeof segment === 'string') {
      if (!isObject(value)) return undefined
      value = getField(value, segment)
    } else {
      if (!Array.isArray(value)) return undefined
      value = value[segment < 0 ? value.length + segment : segment]
    }
    if (value === undefined) return undefined
  }
  return value
}

export function getPath(event: LogEvent, { root, segments }: Path): Value | undefined {
  if (root !== 'event') return getValue(event.metadata.value, segments)
  const first = segments[0]
  if (typeof first !== 'string') return getValue(event.fields, segments)
  const value = event.field(first)
  return segments.length === 1 || value === undefined ? value : getValue(value, segments.slice(1))
}

/**
 * Writes a value below an owned root object, which changes in place. All values along the path are copied. Missing parents are
 * created: objects for names, arrays (filled with null) for indexes.
 */
export function setPath(root: ValueObject, segments: readonly PathSegment[], value: Value): void {
  const first = segments[0]
  if (typeof first !== 'string') return
  setField(root, first, segments.length === 1 ? value : written(getField(root, first), segments, 1, value))
}

/** A copy of `target` with the value written at `segments[from…]`. */
export function written(
  target: Value | undefined,
  segments: readonly PathSegment[],
  from: number,
  value: Value,
): Value {
  if (from === segments.length) return value
  const segment = segments[from] as PathSegment
  if (typeof segment === 'string') {
    const copy: ValueObject = isObject(target) ? copyObject(target) : {}
    setField(
      copy,
      segment,
      written(isObject(target) ? getField(target, segment) : undefined, segments, from + 1, value),
    )
    return copy
  }
  let copy: Value[] = Array.isArray(target) ? target.slice() : []
  let index = segment
  if (index < 0) {
    index += copy.length
    if (index < 0) {
      // Before the beginning: the array grows at the front, so that the index becomes valid.
      copy = new Array<Value>(-index).fill(null).concat(copy)
      index = 0
    }
  }
  while (copy.length < index) copy.push(null)
  copy[index] = written(copy[index], segments, from + 1, value)
  return copy
}

/**
 * Removes and returns the value at a path below an owned root object; undefined if there is none.
 * @param compact whether to remove parents that became empty, except the root
 */
export function removePath(root: ValueObject, segments: readonly PathSegment[], compact = false): Value | undefined {
  const removed = getValue(root, segments)
  const first = segments[0]
  if (removed === undefined || typeof first !== 'string') return undefined
  setField(
    root,
    first,
    segments.length === 1 ? undefined : without(getField(root, first) as Value, segments, 1, compact),
  )
  return removed
}

/** A copy of `target` without the value at `segments[from…]`; undefined if `compact` and the copy is empty. */
export function without(
  target: Value,
  segments: readonly PathSegment[],
  from: number,
  compact: boolean,
): Value | undefined {
  const segment = segments[from] as PathSegment
  const last = from === segments.length - 1
  if (typeof segment === 'string') {
    const copy: ValueObject = { ...(target as ValueObject) }
    setField(copy, segment, last ? undefined : without(getField(copy, segment) as Value, segments, from + 1, compact))
    return compact && isEmptyObject(copy) ? undefined : copy
  }
  const copy = (target as Value[]).slice()
  const index = segment < 0 ? copy.length + segment : segment
  const rest = last ? undefined : without(copy[index] as Value, segments, from + 1, compact)
  if (rest === undefined) copy.splice(index, 1)
  else copy[index] = rest
  return compact && copy.length === 0 ? undefined : copy
}

function isEmptyObject(object: ValueObject): boolean {
  for (const key in object) if (object[key] !== undefined) return false
  return true
}
