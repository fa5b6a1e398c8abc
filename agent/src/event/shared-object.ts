// Objects that many events share, such as the metadata of a container: their size and their JSON are worked out once and kept with
// the object, for as long as something holds it. The producer marks them, because looking up every object would cost more.

import { isObject, type Value } from './value.ts'

export interface SharedObject {
  /** Estimated size as JSON in bytes; negative: not known yet. */
  size: number
  /** The object as JSON in UTF-8. */
  json: Uint8Array | undefined
}

/** Longer JSON is written again each time: it is too large to be kept beside the object. */
export const maxKeptJson = 64 * 1024

const sharedObjects = new WeakMap<object, SharedObject>()

/** Marks an object and the objects below it; none of them may change after that. */
export function markShared(value: Value | undefined): void {
  if (!isObject(value) || sharedObjects.has(value)) return
  sharedObjects.set(value, { size: -1, json: undefined })
  for (const member of Object.values(value)) markShared(member)
}

/** The known facts about an object; undefined if it was never marked. */
export function sharedObject(value: object): SharedObject | undefined {
  return sharedObjects.get(value)
}
