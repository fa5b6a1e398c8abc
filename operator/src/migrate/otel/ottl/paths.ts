// Maps OTTL paths to locations in the event. `record.ts` defines the locations of a record's parts.

import type { Key } from '../record.ts'
import type { Kind } from './code.ts'
import { type PathPart, Unconvertible } from './syntax.ts'

export type ContextName = 'log' | 'resource' | 'scope'

export interface Location {
  /** Whether the path is in the event or in the variable for `cache`, which statements share. */
  readonly base: 'cache' | 'event'
  readonly path: readonly Key[]
  /** The kind of value that the field requires, if any. A missing field has the empty value of this kind. */
  readonly kind: Kind
  /** The unit of a time that is written as a number. */
  readonly isNanoseconds?: true
}

/** The number of hexadecimal digits of the identifiers of a trace and of a span. */
export const idDigits: Readonly<Record<string, number>> = { trace_id: 32, span_id: 16 }

const scalars: Readonly<Record<string, readonly [string, Kind]>> = {
  severity_text: ['severity_text', 'text'],
  severity_number: ['severity_number', 'integer'],
  time: ['timestamp', 'time'],
  time_unix_nano: ['timestamp', 'time'],
  observed_time: ['observed_timestamp', 'time'],
  observed_time_unix_nano: ['observed_timestamp', 'time'],
  flags: ['flags', 'integer'],
  event_name: ['event_name', 'text'],
}

/** @param context the context of paths that do not name one */
export function locate(parts: readonly PathPart[], context: ContextName): Location {
  const [first, ...rest] = parts
  if (parts.some(({ computed }) => computed !== undefined))
    throw new Unconvertible('a computed key has no counterpart in this path')
  const name = first?.name ?? ''
  if (first === undefined) throw new Unconvertible('the path is empty')
  if (name === 'cache') {
    const keys = keysOf(parts)
    return { base: 'cache', path: keys, kind: keys.length === 0 ? 'map' : 'any' }
  }
  if (
    rest.length > 0 &&
    (name === 'log' || name === 'resource' || name === 'scope' || name === 'instrumentation_scope')
  ) {
    if (name === 'log') return locate(rest, 'log')
    if (rest[0]?.name === 'cache') return locate(rest, context)
    return inContext(rest, name === 'resource' ? 'resource' : 'scope')
  }
  return inContext(parts, context)
}

/**
 * The condition under which the collector can read a path, or undefined if it always can. It fails for a key of a text or number, and for
 * an item that a list lacks. Only a body that is an object or a list has keys.
 */
export function guardOf({ base, path }: Location, read: (path: readonly Key[]) => string): string | undefined {
  const isBody = base === 'event' && path[0] === 'message'
  const root = base === 'cache' ? 0 : path[0] === 'attributes' || isBody ? 1 : 2
  const tests = path.slice(root).flatMap((key, index) => {
    if (index === 0 && !isBody) return []
    const around = read(path.slice(0, root + index))
    const test =
      typeof key === 'number'
        ? `(is_array(${around}) && length(array(${around}) ?? []) > ${key})`
        : `is_object(${around})`
    return [index === 0 ? test : `(${around} == null || ${test})`]
  })
  return tests.length === 0 ? undefined : tests.join(' && ')
}

/** The keys of a path that has only keys after its root. */
function keysOf(parts: readonly PathPart[]): readonly Key[] {
  if (parts.length > 1) throw new Unconvertible(`\`${parts.map(({ name }) => name).join('.')}\` is not a known path`)
  return parts[0]?.keys ?? []
}

function inContext(parts: readonly PathPart[], context: ContextName): Location {
  const [first, second] = parts
  const name = first?.name ?? ''
  const field = (path: readonly Key[], kind: Kind): Location => ({ base: 'event', path, kind })
  if (name === 'attributes') {
    const base = context === 'log' ? ['attributes'] : [context, 'attributes']
    const keys = keysOf(parts)
    return field([...base, ...keys], keys.length === 0 ? 'map' : 'any')
  }
  if (context === 'log' && name === 'body') {
    if (second?.name === 'string' && parts.length === 2) return field(['message'], 'text')
    return field(['message', ...keysOf(parts)], 'any')
  }
  if (context === 'log' && (name === 'trace_id' || name === 'span_id')) {
    if (parts.length > 2 || (second !== undefined && second.name !== 'string'))
      throw new Unconvertible(`\`${name}.${second?.name}\` is not a known path`)
    return field([name], 'text')
  }
  const scalar = context === 'log' ? scalars[name] : undefined
  if (scalar !== undefined && parts.length === 1) {
    const [to, kind] = scalar
    return { ...field([to], kind), ...(name.endsWith('_unix_nano') ? { isNanoseconds: true } : {}) }
  }
  if (context === 'scope' && (name === 'name' || name === 'version') && parts.length === 1)
    return field(['scope', name], 'text')
  throw new Unconvertible(
    `\`${[...(context === 'log' ? [] : [context]), ...parts.map((part) => part.name)].join('.')}\` is not a known path of a log record`,
  )
}
