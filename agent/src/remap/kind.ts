// Kinds: the sets of possible types that the compiler tracks through a program. Kinds are immutable. Kinds of arrays
// and objects include the kinds of known elements and the kind of all others.

import type { PathSegment } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import { Bytes, compareKeys, Float, fieldNames, Regex, type Value } from '../event/value.ts'

const STRING = 1
const INTEGER = 2
const FLOAT = 4
const BOOLEAN = 8
const TIMESTAMP = 16
const REGEX = 32
const NULL = 64
const UNDEFINED = 128
const ARRAY = 256
const OBJECT = 512
const ALL = 1023

const names: readonly (readonly [number, string])[] = [
  [STRING, 'string'],
  [INTEGER, 'integer'],
  [FLOAT, 'float'],
  [BOOLEAN, 'boolean'],
  [TIMESTAMP, 'timestamp'],
  [REGEX, 'regex'],
  [NULL, 'null'],
  [UNDEFINED, 'undefined'],
]

/** Kinds of the elements of an array (by index) or object (by field). */
export interface Collection<K extends string | number> {
  readonly known: ReadonlyMap<K, Kind>
  /** Kind of every unknown element; undefined if there can be none. Always contains `undefined`. */
  readonly unknown: Kind | undefined
}

/** Nested kinds can double with each line of a program: beyond this weight, elements may be anything. */
const maxWeight = 20_000

export class Kind {
  /** The basic kinds in the set. */
  readonly bits: number
  readonly array: Collection<number> | undefined
  readonly object: Collection<string> | undefined
  #weight = 0

  constructor(bits: number, array?: Collection<number>, object?: Collection<string>) {
    this.bits = bits
    this.array = array
    this.object = object
  }

  get isNever(): boolean {
    return this.bits === 0
  }

  /** Number of kinds that it consists of, counting shared ones repeatedly. */
  get weight(): number {
    if (this.#weight > 0) return this.#weight
    this.#weight = 1 // the kind of anything contains itself
    if (this.isAny) return 1
    let weight = 1
    for (const collection of [this.array, this.object]) {
      if (collection === undefined) continue
      weight += collection.unknown?.weight ?? 0
      for (const kind of collection.known.values()) weight += kind.weight
    }
    this.#weight = Math.min(weight, Number.MAX_SAFE_INTEGER)
    return this.#weight
  }

  /** This kind; or, if it describes more elements than the checker can handle, the same basic kinds with any elements. */
  get bounded(): Kind {
    return this.weight > maxWeight ? any.and(this) : this
  }

  /** Whether it includes everything, recursively. */
  get isAny(): boolean {
    return this === any || (this.bits === ALL && isAnyCollection(this.array) && isAnyCollection(this.object))
  }

  /** Whether the set is not empty and all its basic kinds are in the other set (ignoring elements). */
  within(other: Kind): boolean {
    return this.bits !== 0 && (this.bits & ~other.bits) === 0
  }

  /** Whether both sets have the same basic kinds (ignoring elements). */
  is(other: Kind): boolean {
    return this.bits === other.bits
  }

  /** Whether this set contains every basic kind of the other. */
  contains(other: Kind): boolean {
    return (other.bits & ~this.bits) === 0
  }

  /** Whether every value of the other kind, including its elements, has this kind. */
  covers(other: Kind): boolean {
    if (this === other || this.isAny) return true
    return this.contains(other) && covers(this.array, other.array) && covers(this.object, other.object)
  }

  /** Whether the sets have a basic kind in common. */
  overlaps(other: Kind): boolean {
    return (this.bits & other.bits) !== 0
  }

  /** The union: the kind of a value from either branch. */
  or(other: Kind): Kind {
    if (this === other || this.isAny) return this
    if (other.isAny) return other
    return new Kind(
      this.bits | other.bits,
      unionCollection(this.array, other.array),
      unionCollection(this.object, other.object),
    )
  }

  /** The set without some basic kinds. */
  without(other: Kind): Kind {
    const bits = this.bits & ~other.bits
    if (bits === this.bits) return this
    return new Kind(bits, bits & ARRAY ? this.array : undefined, bits & OBJECT ? this.object : undefined)
  }

  /** The kind of a read: absent values are null. */
  get undefinedAsNull(): Kind {
    return this.bits & UNDEFINED ? new Kind((this.bits & ~UNDEFINED) | NULL, this.array, this.object) : this
  }

  orUndefined(): Kind {
    return this.bits & UNDEFINED ? this : new Kind(this.bits | UNDEFINED, this.array, this.object)
  }

  /** The basic kinds common to both; elements are those of this kind. */
  and(other: Kind): Kind {
    const bits = this.bits & other.bits
    return new Kind(bits, bits & ARRAY ? this.array : undefined, bits & OBJECT ? this.object : undefined)
  }

  /** Union of the kinds of all elements; never if there can be none. */
  get elements(): Kind {
    let all = never
    for (const collection of [this.array, this.object]) {
      if (collection === undefined) continue
      for (const kind of collection.known.values()) all = all.or(kind)
      if (collection.unknown !== undefined) all = all.or(collection.unknown.without(undefinedKind))
    }
    return all
  }

  /** The kind at a path below this one. */
  at(segments: readonly PathSegment[], from = 0, to = segments.length): Kind {
    if (from === to || this.isNever) return this
    const segment = segments[from] as PathSegment
    return (typeof segment === 'string' ? fieldOf(this, segment) : itemOf(this, segment)).at(segments, from + 1, to)
  }

  /** The text in diagnostics: `string`, `integer or null`, `[string, integer]`, `{ a: string }`. */
  toString(): string {
    // The kind of an expression that never has a value includes all, for the reference.
    if (this.isAny || this.isNever) return 'any'
    const parts = names.filter(([bit]) => (this.bits & bit) !== 0).map(([, name]) => name)
    if (this.bits & ARRAY) parts.push(arrayText(this.array))
    if (this.bits & OBJECT) parts.push(objectText(this.object))
    const last = parts.pop() as string
    return parts.length === 0 ? last : `${parts.join(', ')} or ${last}`
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the keys of an empty collection are of any type
const emptyCollection: Collection<any> = { known: new Map(), unknown: undefined }

// `any` holds itself: the element kind of its arrays and objects is `any` again.
// biome-ignore lint/suspicious/noExplicitAny: the keys of an empty collection are of any type
const anyElements: { known: ReadonlyMap<any, Kind>; unknown: Kind | undefined } = {
  known: new Map(),
  unknown: undefined,
}
const any = new Kind(ALL, anyElements, anyElements)
anyElements.unknown = any

const never = new Kind(0)
const undefinedKind = new Kind(UNDEFINED)
const nullKind = new Kind(NULL)

function isAnyCollection(collection: Collection<string> | Collection<number> | undefined): boolean {
  return collection !== undefined && collection.known.size === 0 && collection.unknown?.isAny === true
}

/** An array with exactly these elements. */
function arrayOf(items: readonly Kind[]): Kind {
  return new Kind(ARRAY, { known: new Map(items.entries()), unknown: undefined })
}

/** An object with exactly these fields. */
function objectOf(fields: Readonly<Record<string, Kind>>): Kind {
  return new Kind(OBJECT, undefined, { known: new Map(Object.entries(fields)), unknown: undefined })
}

/** The basic kinds, unions of them by `or`, and collections. */
export const kinds = {
  never,
  any,
  string: new Kind(STRING),
  integer: new Kind(INTEGER),
  float: new Kind(FLOAT),
  number: new Kind(INTEGER | FLOAT),
  boolean: new Kind(BOOLEAN),
  timestamp: new Kind(TIMESTAMP),
  regex: new Kind(REGEX),
  null: nullKind,
  /** Absent. */
  undefined: undefinedKind,
  /** An array or object with elements of any kind. */
  array: new Kind(ARRAY, anyElements),
  object: new Kind(OBJECT, undefined, anyElements),
  arrayOf,
  objectOf,
  /** An array of any number of elements of a kind. */
  arrayEach: (item: Kind): Kind => new Kind(ARRAY, { known: new Map(), unknown: item.orUndefined() }),
  /** An array with known elements, and others of a kind. */
  arrayWith: (items: ReadonlyMap<number, Kind>, others: Kind): Kind =>
    new Kind(ARRAY, { known: items, unknown: others.orUndefined() }),
  /** An object with any fields, all of one kind. */
  objectEach: (field: Kind): Kind => new Kind(OBJECT, undefined, { known: new Map(), unknown: field.orUndefined() }),
  /** An object with known fields, and others of a kind. */
  objectWith: (fields: Readonly<Record<string, Kind>>, others: Kind): Kind =>
    new Kind(OBJECT, undefined, { known: new Map(Object.entries(fields)), unknown: others.orUndefined() }),
} as const

/** The exact kind of a value. */
export function kindOf(value: Value | undefined): Kind {
  switch (typeof value) {
    case 'string':
      return kinds.string
    case 'number':
      return Number.isInteger(value) ? kinds.integer : kinds.float
    case 'bigint':
      return kinds.integer
    case 'boolean':
      return kinds.boolean
    case 'undefined':
      return kinds.undefined
  }
  if (value === null) return kinds.null
  if (Array.isArray(value)) return arrayOf(value.map(kindOf))
  if (value instanceof Timestamp) return kinds.timestamp
  if (value instanceof Float) return kinds.float
  if (value instanceof Bytes) return kinds.string
  if (value instanceof Regex) return kinds.regex
  const object = value
  const known = new Map<string, Kind>()
  for (const name of fieldNames(object)) known.set(name, kindOf(object[name]))
  return new Kind(OBJECT, undefined, { known, unknown: undefined })
}

/** Whether a value has one of the basic kinds of a set. */
export function isOfKind(value: Value | undefined, kind: Kind): boolean {
  return (kind.bits & basicBit(value)) !== 0
}

function basicBit(value: Value | undefined): number {
  switch (typeof value) {
    case 'string':
      return STRING
    case 'number':
      return Number.isInteger(value) ? INTEGER : FLOAT
    case 'bigint':
      return INTEGER
    case 'boolean':
      return BOOLEAN
    case 'undefined':
      return UNDEFINED
  }
  if (value === null) return NULL
  if (Array.isArray(value)) return ARRAY
  if (value instanceof Timestamp) return TIMESTAMP
  if (value instanceof Float) return FLOAT
  if (value instanceof Bytes) return STRING
  if (value instanceof Regex) return REGEX
  return OBJECT
}

/** The kind of `left | right`, both objects: fields of the right side overwrite. */
export function mergedObjects(left: Kind, right: Kind): Kind {
  const mine = left.object ?? emptyCollection
  const other = right.object ?? emptyCollection
  const known = new Map<string, Kind>()
  for (const [name, kind] of mine.known) {
    const over = other.known.get(name)
    known.set(
      name,
      over !== undefined
        ? (over.bits & UNDEFINED) !== 0
          ? over.without(undefinedKind).or(kind)
          : over
        : other.unknown !== undefined
          ? kind.or(other.unknown.without(undefinedKind))
          : kind,
    )
  }
  for (const [name, kind] of other.known) if (!known.has(name)) known.set(name, kind)
  return new Kind(OBJECT, undefined, { known, unknown: unionUnknown(mine.unknown, other.unknown) })
}

function unionUnknown(left: Kind | undefined, right: Kind | undefined): Kind | undefined {
  return left === undefined ? right : right === undefined ? left : left.or(right)
}

export function unionCollection<K extends string | number>(
  left: Collection<K> | undefined,
  right: Collection<K> | undefined,
): Collection<K> | undefined {
  if (left === undefined || left === right) return right
  if (right === undefined) return left
  const known = new Map<K, Kind>()
  for (const [key, kind] of left.known) known.set(key, kind.or(right.known.get(key) ?? right.unknown ?? undefinedKind))
  for (const [key, kind] of right.known) {
    if (!left.known.has(key)) known.set(key, kind.or(left.unknown ?? undefinedKind))
  }
  return { known, unknown: unionUnknown(left.unknown, right.unknown) }
}

function fieldOf(kind: Kind, name: string): Kind {
  if (kind.object === undefined) return undefinedKind
  const field = kind.object.known.get(name) ?? kind.object.unknown ?? undefinedKind
  return kind.bits === OBJECT ? field : field.orUndefined()
}

function itemOf(kind: Kind, index: number): Kind {
  if (kind.array === undefined) return undefinedKind
  const { known, unknown } = kind.array
  let item: Kind
  if (index >= 0) {
    item = known.get(index) ?? unknown ?? undefinedKind
  } else {
    const { shortest, longest } = lengths(kind.array)
    item = never
    for (let length = shortest; length <= longest; length++) {
      item = item.or(length + index < 0 ? undefinedKind : (known.get(length + index) ?? unknown ?? undefinedKind))
    }
    if (unknown !== undefined) {
      item = item.or(longest + 1 + index < 0 ? unknown : unknown.without(undefinedKind))
      for (const [at, element] of known) if (at >= shortest + index) item = item.or(element)
    }
    if (unknown?.isAny === true && known.size === 0) item = any
  }
  return kind.bits === ARRAY ? item : item.orUndefined()
}

/** Shortest and longest length possible with the known items. */
function lengths(array: Collection<number>): { shortest: number; longest: number } {
  let shortest = 0
  let longest = 0
  for (const [index, kind] of array.known) {
    if (index + 1 > longest) longest = index + 1
    if ((kind.bits & UNDEFINED) === 0 && index + 1 > shortest) shortest = index + 1
  }
  return { shortest, longest }
}

function covers<K extends string | number>(
  wide: Collection<K> | undefined,
  narrow: Collection<K> | undefined,
): boolean {
  if (wide === narrow || narrow === undefined) return true
  if (wide === undefined) return false
  const others = wide.unknown ?? undefinedKind
  if (!others.covers(narrow.unknown ?? undefinedKind)) return false
  for (const [key, kind] of narrow.known) if (!(wide.known.get(key) ?? others).covers(kind)) return false
  for (const [key, kind] of wide.known) {
    if (!narrow.known.has(key) && !kind.covers(narrow.unknown ?? undefinedKind)) return false
  }
  return true
}

function arrayText(array: Collection<number> | undefined): string {
  if (array === undefined || array.unknown !== undefined || array.known.size === 0) return 'array'
  const items = [...array.known].sort(([left], [right]) => left - right)
  return `[${items.map(([, kind]) => String(kind)).join(', ')}]`
}

function objectText(object: Collection<string> | undefined): string {
  if (object === undefined || object.unknown !== undefined || object.known.size === 0) return 'object'
  const fields = [...object.known].sort(([left], [right]) => compareKeys(left, right))
  return `{ ${fields.map(([name, kind]) => `${fieldText(name)}: ${kind}`).join(', ')} }`
}

/** A field name in a path: quoted unless it is a plain word. */
export function fieldText(name: string): string {
  return /^[@_A-Za-z][@_A-Za-z0-9]*$/.test(name)
    ? name
    : `"${name.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
}
