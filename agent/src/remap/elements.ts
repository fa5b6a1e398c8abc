// Shared by functions on collections and numbers: kinds of elements, traversal of nested collections, paths given as
// arrays.

import type { PathSegment } from '../event/path.ts'
import {
  Bytes,
  type Float,
  fieldNames,
  float,
  isInteger,
  isObject,
  setField,
  sortedFieldNames,
  type Value,
  type ValueObject,
} from '../event/value.ts'
import { type CallKinds, type Closure, failure, isFailure, type RemapError, type Result, toNumber } from './function.ts'
import { type Collection, Kind, kinds } from './kind.ts'
import { textOfKind } from './text.ts'

/** Kinds of the key and value that a closure receives for a collection. */
export function elementKinds(collection: Kind): readonly [Kind, Kind] {
  const object = collection.overlaps(kinds.object)
  const array = collection.overlaps(kinds.array)
  const key = object ? (array ? kinds.string.or(kinds.integer) : kinds.string) : kinds.integer
  const value = collection.elements.without(kinds.undefined)
  return [key, value.isNever ? kinds.any.without(kinds.undefined) : value]
}

/** The kind of a collection after every element was replaced by one of another kind. It stays as wide as it was. */
export function mappedKind(collection: Kind, element: Kind, recursive: boolean): Kind {
  const nested = kinds.array.or(kinds.object)
  const each = recursive && element.overlaps(nested) ? element.without(nested).or(nested) : element
  return new Kind(
    collection.bits,
    collection.array === undefined ? undefined : mapped(collection.array, each),
    collection.object === undefined ? undefined : mapped(collection.object, each),
  )
}

function mapped<K extends string | number>(collection: Collection<K>, element: Kind): Collection<K> {
  const known = new Map<K, Kind>()
  for (const [key, kind] of collection.known) {
    known.set(key, kind.overlaps(kinds.undefined) ? element.or(kinds.undefined) : element)
  }
  // The other members keep their wide kinds: programs may handle errors that no value of the closure causes.
  return { known, unknown: collection.unknown?.or(element).or(kinds.undefined) }
}

/** The collection with the closure's results; nested collections are visited after their parent. */
export function mapEach(value: Value, recursive: boolean, closure: Closure): Result {
  return visited(value, recursive ? { left: maxVisits } : undefined, closure, 0)
}

// A closure that returns collections could recurse forever.
const maxVisits = 1_000_000
const maxDepth = 1000

function visited(value: Value, budget: { left: number } | undefined, closure: Closure, depth: number): Result {
  if (Array.isArray(value)) {
    const items: Value[] = []
    for (const item of value) {
      const given = mapOne(item, budget, closure, depth)
      if (isFailure(given)) return given
      items.push(given)
    }
    return items
  }
  if (!isObject(value)) return value
  const fields: ValueObject = {}
  for (const name of sortedFieldNames(value)) {
    const given = mapOne(value[name] as Value, budget, closure, depth)
    if (isFailure(given)) return given
    setField(fields, name, given)
  }
  return fields
}

function mapOne(value: Value, budget: { left: number } | undefined, closure: Closure, depth: number): Result {
  const given = closure(value)
  if (budget === undefined || isFailure(given)) return given
  if (--budget.left < 0 || depth >= maxDepth) {
    return failure(`the closure gives more than ${maxVisits} values, or more than ${maxDepth} inside of each other`)
  }
  return visited(given, budget, closure, depth + 1)
}

/** A path given as an array. */
export function pathSegments(path: readonly Value[]): PathSegment[] | RemapError {
  const segments: PathSegment[] = []
  for (const segment of path) {
    if (typeof segment === 'string' || segment instanceof Bytes) segments.push(String(segment))
    else if (typeof segment === 'number' && Number.isInteger(segment)) segments.push(segment)
    else if (typeof segment === 'bigint') segments.push(Number(segment))
    else return failure(`path segment must be either string or integer, not ${textOfKind(segment)}`)
  }
  return segments
}

/** Field names given as an array. */
export function fieldOrder(items: readonly Value[]): string[] | RemapError {
  const names: string[] = []
  for (const item of items) {
    if (typeof item !== 'string' && !(item instanceof Bytes)) {
      return failure(`invalid field value type at index ${names.length}: expected string, got ${textOfKind(item)}`)
    }
    names.push(String(item))
  }
  return names
}

/** Result kind of a function that returns an integer for integers and a float for floats. */
export function numberKind(call: CallKinds): Kind {
  const kind = call.kind('value')
  return kind.is(kinds.integer) || kind.is(kinds.float) ? kind : kinds.number
}

/** A float rounded to a number of decimals; zero if the result is out of range. */
export function rounded(value: number, precision: number | bigint, round: (value: number) => number): number | Float {
  const scale = 10 ** Number(precision)
  const result = round(value * scale) / scale
  return float(Number.isNaN(result) ? 0 : result)
}

/** Shared by the rounding functions: parameters, result and call, for a given rounding of floats to whole numbers. */
export function rounding(round: (value: number) => number) {
  return {
    category: 'Number',
    parameters: [
      { name: 'value', kind: kinds.number, description: 'The number.' },
      {
        name: 'precision',
        kind: kinds.integer,
        required: false,
        default: 0,
        description: 'Number of decimals to keep; may be negative.',
      },
    ],
    returns: numberKind,
    fallible: 'never',
    pure: true,
    compile: () => (value: number | bigint | Float, precision: number | bigint) =>
      isInteger(value) ? value : rounded(toNumber(value), precision, round),
  } as const
}

/** A parameter of functions that compare texts. */
export const caseSensitive = {
  name: 'case_sensitive',
  kind: kinds.boolean,
  required: false,
  default: true,
  description: 'Whether the comparison is case-sensitive.',
} as const

/** Number of fields that are present. */
export function fieldCount(value: ValueObject): number {
  return fieldNames(value).length
}
