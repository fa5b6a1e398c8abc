// Reads and writes of the event, its metadata and variables, at paths below them.

import type { PathSegment } from '../../event/path.ts'
import { isInheritedName } from '../../event/value.ts'
import { type Kind, kinds } from '../kind.ts'
import type { Place } from '../typed.ts'
import { type Fail, type Generation, type Node, variable } from './generation.ts'

function property(object: string, name: string): string {
  if (isInheritedName(name)) return `getField(${object}, ${JSON.stringify(name)})`
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `${object}.${name}` : `${object}[${JSON.stringify(name)}]`
}

/** Reads below a value; the code gives undefined if the path does not exist. */
export function below(g: Generation, base: string, kind: Kind, segments: readonly PathSegment[]): string {
  let at = base
  let known = g.known(kind)
  for (const segment of segments) {
    const exact = !known.isNever && known.is(typeof segment === 'string' ? kinds.object : kinds.array)
    if (typeof segment === 'string') {
      if (!exact || isInheritedName(segment)) at = g.out.temp(at)
      const field = property(at, segment)
      at = exact ? field : `(isObject(${at}) ? ${field} : undefined)`
    } else {
      at = g.out.temp(at)
      const index = segment < 0 ? `${at}.length - ${-segment}` : segment
      at = exact ? `${at}[${index}]` : `(Array.isArray(${at}) ? ${at}[${index}] : undefined)`
    }
    known = g.trusted ? known.at([segment]) : kinds.any
  }
  return at
}

export function read(g: Generation, typed: Node<'read'>, defined: boolean): string {
  const { place, rootKind } = typed
  if (place.root === 'variable') {
    g.slots.add(place.slot)
    const name = variable(place.slot)
    if (place.segments.length === 0) return name
    const value = below(g, name, rootKind, place.segments)
    return defined ? `(${value} ?? null)` : value
  }
  const root = place.root === 'event' ? 'root' : 'meta'
  if (place.segments.length === 0) {
    if (place.root === 'event') g.out.emit('own = false;')
    return g.out.temp(root)
  }
  const value = below(g, root, place.root === 'event' ? rootKind : kinds.object, place.segments)
  return defined ? `(${value} ?? null)` : value
}

function ownRoot(g: Generation, kind: Kind): void {
  const known = g.known(kind)
  if (!known.isNever && known.is(kinds.object)) g.out.emit('if (!own) { root = copyObject(root); own = true; }')
  else g.out.emit('root = ownedObject(root, own); own = true;')
}

export function write(g: Generation, place: Place, value: string, rootKind: Kind, fresh: boolean): void {
  const { segments } = place
  switch (place.root) {
    case 'none':
      if (!/^[\w$]+$/.test(value)) g.out.emit(`${value};`)
      return
    case 'variable': {
      g.slots.add(place.slot)
      const name = variable(place.slot)
      g.budget.countCopies(name, segments)
      g.out.emit(
        segments.length === 0
          ? `${name} = ${value};`
          : `${name} = written(${name}, ${g.out.hoist(segments)}, 0, ${value});`,
      )
      return
    }
    case 'metadata':
      g.effects.writesMetadata = true
      g.budget.countCopies('meta', segments)
      g.out.emit(
        segments.length === 0 ? `meta = ${value};` : `meta = written(meta, ${g.out.hoist(segments)}, 0, ${value});`,
      )
      return
    case 'event': {
      if (g.isMetric) {
        g.effects.writesEvent = true
        g.out.emit(`writeToMetric(root, ${g.out.hoist(segments)}, ${value}, S.tagMode);`)
        return
      }
      const first = segments[0]
      g.effects.changing(first)
      if (first === undefined) {
        g.out.emit(`root = ${value}; own = ${fresh};`)
        g.effects.replaced()
        return
      }
      g.effects.written()
      g.budget.countCopies('root', segments)
      if (typeof first === 'number') {
        g.out.emit(`root = written(root, ${g.out.hoist(segments)}, 0, ${value}); own = false;`)
        return
      }
      ownRoot(g, rootKind)
      const field = property('root', first)
      const changed = segments.length === 1 ? value : `written(${field}, ${g.out.hoist(segments)}, 1, ${value})`
      g.out.emit(
        isInheritedName(first) ? `setField(root, ${JSON.stringify(first)}, ${changed});` : `${field} = ${changed};`,
      )
    }
  }
}

export function del(g: Generation, typed: Node<'del'>, fail: Fail, wanted: boolean): string {
  const { at } = typed
  const compact = typed.compact === undefined ? 'false' : g.out.temp(g.expression(typed.compact, fail, true))
  if (at.op !== 'read') return g.expression(at, fail, true)
  const { place } = at
  const { segments } = place
  if (place.root === 'event' && g.isMetric) {
    g.effects.writesEvent = true
    const value = g.out.temp(read(g, at, true))
    g.out.emit(`removeFromMetric(root, ${g.out.hoist(segments)});`)
    return value
  }
  if (place.root === 'event') {
    const first = segments[0]
    g.effects.changing(first)
    if (first === undefined) {
      const value = g.out.temp('root')
      g.out.emit('root = Array.isArray(root) ? [] : isObject(root) ? {} : null; own = true;')
      g.effects.replaced()
      return value
    }
    const known = g.known(at.rootKind)
    const simple = segments.length === 1 && typeof first === 'string' && known.is(kinds.object)
    g.effects.written()
    if (simple) {
      const field = property('root', first as string)
      const value = g.out.temp(field)
      g.out.emit(`if (${value} !== undefined) {`)
      ownRoot(g, at.rootKind)
      g.out.emit(
        isInheritedName(first as string)
          ? `setField(root, ${JSON.stringify(first)}, undefined); }`
          : `${field} = undefined; }`,
      )
      return wanted ? `(${value} ?? null)` : 'null'
    }
  }
  const value = g.out.temp(read(g, at, true))
  const path = g.out.hoist(segments)
  const removed = place.root === 'event' ? 'root' : place.root === 'metadata' ? 'meta' : variable(place.slot)
  g.budget.countCopies(removed, segments)
  if (place.root === 'event') g.out.emit(`root = removedBelow(root, ${path}, ${compact}); own = false;`)
  else if (place.root === 'metadata') {
    g.effects.writesMetadata = true
    g.out.emit(`meta = removedBelow(meta, ${path}, ${compact});`)
  } else {
    const name = variable(place.slot)
    g.out.emit(`${name} = removedBelow(${name}, ${path}, ${compact});`)
  }
  return value
}
