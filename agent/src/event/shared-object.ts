// Objects that many events share, such as the metadata of a container. Their size and JSON are computed once, and kept for as long as
// the object is referenced. The producer marks these objects, because tracking every object would cost more.

import { isObject, type Value } from './value.ts'

export interface SharedObject {
  /** Estimated size as JSON in bytes; negative if not yet known. */
  size: number
  /** The object as JSON in UTF-8. */
  json: Uint8Array | undefined
}

/** Maximum length of JSON that is kept. Longer JSON is written again each time. */
export const maxKeptJson = 64 * 1024

const sharedObjects = new WeakMap<object, SharedObject>()

/** Marks an object and all nested objects. None of them may change afterwards. */
export function markShared(value: Value | undefined): void {
  if (!isObject(value) || sharedObjects.has(value)) return
  sharedObjects.set(value, { size: -1, json: undefined })
  for (const member of Object.values(value)) markShared(member)
}

/** The known facts about an object; undefined if it is not marked. */
export function sharedObject(value: object): SharedObject | undefined {
  return sharedObjects.get(value)
}

/** The JSON of a value; that of an object that many events share is kept. */
export function keptJson(value: Value, write: (value: Value) => Uint8Array): Uint8Array {
  const shared = isObject(value) ? sharedObjects.get(value) : undefined
  if (shared?.json !== undefined) return shared.json
  const json = write(value)
  if (shared !== undefined && json.length <= maxKeptJson) shared.json = json
  return json
}
