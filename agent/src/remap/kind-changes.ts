// Kinds after a write or a removal at a path.

import type { PathSegment } from '../event/path.ts'
import { type Collection, Kind, kinds, unionCollection } from './kind.ts'

type Items = Collection<number>

/** The kind after writing a value of another kind at a path. */
export function withKindAt(kind: Kind, segments: readonly PathSegment[], value: Kind, from = 0): Kind {
  // A value that never exists is never written.
  if (value.isNever) return kind
  if (from === segments.length) return value
  const segment = segments[from] as PathSegment
  const change = (below: Kind): Kind => withKindAt(below, segments, value, from + 1)
  if (typeof segment === 'number') return arrayWith(kind.array ?? noItems, segment, change)
  const { known, unknown } = kind.object ?? noFields
  const fields = new Map(known)
  fields.set(segment, change(known.get(segment) ?? unknown ?? kinds.undefined))
  return new Kind(kinds.object.bits, undefined, { known: fields, unknown })
}

const noItems = kinds.arrayOf([]).array as Items
const noFields = kinds.objectOf({}).object as Collection<string>

function arrayOf(items: Items): Kind {
  return new Kind(kinds.array.bits, items)
}

function arrayWith(items: Items, index: number, change: (below: Kind) => Kind): Kind {
  const known = new Map(items.known)
  const length = knownLength(items)
  if (index < 0 && items.unknown !== undefined) return withItemFromEnd(items, items.unknown, -index, change)
  // Without unknown items, the length is that of the known ones; a longer array is taken to grow at its end.
  for (let hole = length; hole < -index; hole++) known.set(hole, kinds.null)
  const at = index < 0 ? index + Math.max(length, -index) : index
  if (!known.has(at)) {
    const hole = items.unknown?.undefinedAsNull ?? kinds.null
    for (let before = 0; before < at; before++) if (!known.has(before)) known.set(before, hole)
  }
  known.set(at, change(known.get(at) ?? items.unknown ?? kinds.undefined))
  return arrayOf({ known, unknown: items.unknown })
}

/** Above this number of combinations, the items after a write may be anything. */
const maxShifts = 100_000

/** A write at a distance from the end of an array of unknown length, which may grow at its front. */
function withItemFromEnd(items: Items, unknown: Kind, distance: number, change: (below: Kind) => Kind): Kind {
  const length = knownLength(items)
  const shifts = Math.max(0, distance - length)
  if (shifts * (items.known.size + 1) > maxShifts) return kinds.array
  const known = new Map(items.known)
  for (let at = 0; at < distance; at++) {
    let item = items.known.get(at) ?? unknown
    for (let shift = 1; shift <= Math.min(shifts, at); shift++) item = item.or(items.known.get(at - shift) ?? unknown)
    // With more shifts than items before it, there is a gap here, except at the front: there is the written value.
    if (shifts > at) item = item.or(at === 0 ? unknown : kinds.null)
    known.set(at, item.without(kinds.undefined))
  }
  for (const [at, item] of known) if (at >= length - distance) known.set(at, item.or(change(item)))
  return arrayOf({ known, unknown: unknown.or(change(unknown)).orUndefined() })
}

/** One more than the largest index of an item that may exist. */
function knownLength({ known }: Items): number {
  let length = 0
  for (const [index, kind] of known) if (index >= length && mayExist(kind)) length = index + 1
  return length
}

function mayExist(kind: Kind | undefined): boolean {
  return kind !== undefined && !kind.without(kinds.undefined).isNever
}

/** The kind after removing the value at a path. @param compact whether containers that become empty are removed, too */
export function withoutKindAt(kind: Kind, segments: readonly PathSegment[], compact: boolean): Kind {
  if (segments.length > 0) return removed(kind, segments, 0, compact).kind
  // The root itself cannot be missing: it becomes empty, or null.
  const collections = kinds.array.or(kinds.object)
  let empty = kind.without(collections).isNever && !kind.isNever ? kinds.never : kinds.null
  if (kind.overlaps(kinds.array)) empty = empty.or(kinds.arrayOf([]))
  if (kind.overlaps(kinds.object)) empty = empty.or(kinds.objectOf({}))
  return empty
}

/** A kind after a removal inside of it, and whether it is to be removed itself. */
interface Removal {
  readonly kind: Kind
  readonly gone: 'always' | 'perhaps' | 'never'
}

function removed(kind: Kind, segments: readonly PathSegment[], from: number, compact: boolean): Removal {
  const unchanged: Removal = { kind, gone: 'never' }
  if (kind.isNever) return unchanged
  if (from === segments.length) {
    if (!mayExist(kind)) return unchanged
    return { kind, gone: kind.overlaps(kinds.undefined) ? 'perhaps' : 'always' }
  }
  const segment = segments[from] as PathSegment
  const below = (there: Kind | undefined): Removal =>
    removed(there ?? kind.at(segments, from), segments, from + 1, compact)
  if (typeof segment === 'string') {
    if (kind.object === undefined) return unchanged
    const { rest, gone } = compacted(kind.object, segment, below, withoutField, compact)
    return { kind: new Kind(kind.bits, kind.array, rest), gone }
  }
  if (kind.array === undefined) return unchanged
  const length = knownLength(kind.array)
  const index = segment < 0 ? length + segment : segment
  if (index < 0) return unchanged
  if (segment >= 0 || kind.array.unknown === undefined) {
    const { rest, gone } = compacted(kind.array, index, below, withoutItem, compact)
    return { kind: new Kind(kind.bits, rest, kind.object), gone }
  }
  // The length is unknown: any known item from here on may be the one, or none of them.
  let items = kind.array
  for (let at = index; at < length; at++) {
    if (kind.array.known.has(at)) {
      items = unionCollection(items, compacted(kind.array, at, below, withoutItem, compact).rest) as Items
    }
  }
  return { kind: new Kind(kind.bits, items, kind.object), gone: knownLength(items) <= 1 ? 'perhaps' : 'never' }
}

function compacted<K extends string | number>(
  elements: Collection<K>,
  key: K,
  below: (there: Kind | undefined) => Removal,
  without: (elements: Collection<K>, key: K) => Collection<K>,
  compact: boolean,
): { readonly rest: Collection<K>; readonly gone: Removal['gone'] } {
  const there = elements.known.get(key)
  const change = below(there)
  let rest = elements
  if (there !== undefined) rest = { known: new Map(elements.known).set(key, change.kind), unknown: elements.unknown }
  if (change.gone === 'never') return { rest, gone: 'never' }
  const gone = without(rest, key)
  rest = change.gone === 'always' ? gone : (unionCollection(gone, rest) as Collection<K>)
  if (!compact || rest.known.size > 0) return { rest, gone: 'never' }
  return { rest, gone: mayExist(rest.unknown) ? 'perhaps' : 'always' }
}

function withoutField({ known, unknown }: Collection<string>, name: string): Collection<string> {
  const fields = new Map(known)
  fields.delete(name)
  return { known: fields, unknown }
}

/** The items after the removal of one. As in the reference, only the next item moves; programs test these kinds. */
function withoutItem(items: Items, index: number): Items {
  const known = new Map(items.known)
  const next = known.get(index + 1)
  known.delete(index)
  if (next !== undefined && index < knownLength(items)) {
    known.delete(index + 1)
    known.set(index, next)
  }
  return { known, unknown: items.unknown }
}
