// Writes the line of an entry without some fields of its event.

import type { Body } from '../../event/body.ts'
import { DeferredEvent } from '../../event/deferred.ts'
import type { LogEvent } from '../../event/log.ts'
import { type Path, removePath } from '../../event/path.ts'
import type { Timestamp } from '../../event/timestamp.ts'
import { getField, setField, type Value, type ValueObject } from '../../event/value.ts'
import type { PushFormat } from './streams.ts'

/**
 * Writes an entry while some fields of its event are hidden. Other holders of the event cannot notice: no other code runs
 * meanwhile, and the values are restored. Copying each event would cost more than writing it.
 */
export function writeWithout(
  event: LogEvent,
  instant: Timestamp,
  metadata: ReadonlyMap<string, string> | undefined,
  format: PushFormat,
  body: Body,
  timestampKey: string | undefined,
  removed: readonly Path[],
): number | string {
  if (event instanceof DeferredEvent && event.hides && removed.every(isRootField)) {
    event.hidden = namesOf(removed, timestampKey)
    try {
      return format.entry(event, instant, metadata, body)
    } finally {
      event.hidden = []
    }
  }
  const { fields } = event
  const timestamp = timestampKey === undefined ? undefined : getField(fields, timestampKey)
  if (timestamp !== undefined) setField(fields, timestampKey as string, undefined)
  const saved = removed.length === 0 ? undefined : hide(fields, removed)
  try {
    return format.entry(event, instant, metadata, body)
  } finally {
    if (saved !== undefined) restore(fields, removed, saved)
    if (timestamp !== undefined) setField(fields, timestampKey as string, timestamp)
  }
}

/** Lists by the paths of a sink: other parts of the agent keep results for a list of names. */
const lists = new WeakMap<readonly Path[], Map<string | undefined, readonly string[]>>()

function namesOf(removed: readonly Path[], timestampKey: string | undefined): readonly string[] {
  let known = lists.get(removed)
  if (known === undefined) {
    known = new Map()
    lists.set(removed, known)
  }
  let names = known.get(timestampKey)
  if (names === undefined) {
    names = removed.map(({ segments }) => segments[0] as string)
    if (timestampKey !== undefined) names = [timestampKey, ...names]
    known.set(timestampKey, names)
  }
  return names
}

/** Removes the fields at the paths; returns the root fields with their previous values. */
function hide(fields: ValueObject, paths: readonly Path[]): (Value | undefined)[] {
  return paths.map(({ segments }) => {
    const root = segments[0]
    if (typeof root !== 'string') return undefined
    const before = getField(fields, root)
    removePath(fields, segments)
    return before
  })
}

function restore(fields: ValueObject, paths: readonly Path[], saved: readonly (Value | undefined)[]): void {
  for (let index = paths.length - 1; index >= 0; index--) {
    const root = (paths[index] as Path).segments[0]
    if (typeof root === 'string' && saved[index] !== undefined) setField(fields, root, saved[index])
  }
}

/** Whether a path names a field of the root. */
export function isRootField({ segments }: Path): boolean {
  return segments.length === 1 && typeof segments[0] === 'string'
}
