// A log event: its fields, and metadata that is not part of them.

import { type Shape, shapeOf } from './shape.ts'
import { memberSize, sizeByShape } from './size.ts'
import { copyObject, getField, type Value, type ValueObject } from './value.ts'

/** Data about an event that is not part of its fields: the values that programs access with `%`, and secrets. Immutable. */
export interface EventMetadata {
  readonly value: ValueObject
  readonly secrets: Readonly<Record<string, string>>
}

export const noMetadata: EventMetadata = Object.freeze({ value: Object.freeze({}), secrets: Object.freeze({}) })

export class LogEvent {
  /** The root object. Its owner may change it in place, and must then call `changed`. `DeferredEvent` has an accessor instead. */
  declare fields: ValueObject
  metadata: EventMetadata
  #size = -1
  #shape: Shape | null | undefined

  constructor(fields: ValueObject, metadata: EventMetadata = noMetadata) {
    this.fields = fields
    this.metadata = metadata
  }

  /** Estimated size as JSON in bytes, for `*_event_bytes_total` and `batch.max_bytes`. */
  get size(): number {
    if (this.#size < 0) this.#size = sizeByShape(this.fields, this.shape)
    return this.#size
  }

  /** A field of the root; undefined if it does not exist. Deferred events may know it without creating their fields. */
  field(name: string): Value | undefined {
    return getField(this.fields, name)
  }

  /** The shape of the root; null if its sequence of keys is not hot. */
  get shape(): Shape | null {
    if (this.#shape === undefined) this.#shape = shapeOf(this.fields)
    return this.#shape
  }

  /** Call after changing the fields, so that size and shape are computed again. */
  changed(): void {
    this.#size = -1
    this.#shape = undefined
  }

  /**
   * Call instead of `changed` if only these fields may have changed. Updates the size and the shape, if known.
   * @param before the previous values of the fields, in the order of `names`
   */
  changedIn(names: readonly string[], before: readonly (Value | undefined)[]): void {
    if (this.#size < 0) {
      this.changed()
      return
    }
    let size = this.#size
    // A cold object may have a hot sequence of keys after the change, so its shape is looked up again.
    let shape = this.#shape ?? undefined
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string
      const old = before[index]
      const value = this.fields[name]
      if (value === old) continue
      if (old !== undefined) size -= memberSize(name, old)
      else shape = shape?.with(name) ?? undefined
      if (value !== undefined) size += memberSize(name, value)
    }
    this.#size = size
    this.#shape = shape
  }

  /** A separate event with the same content. Both share the values, which are immutable. */
  copy(): LogEvent {
    return new LogEvent(copyObject(this.fields), this.metadata)
  }

  /** A copy with the known size and shape. A caller that changes its fields must call `changed` or `changedIn`. */
  measuredCopy(): LogEvent {
    const copy = this.copy()
    copy.#size = this.#size
    copy.#shape = this.#shape
    return copy
  }
}

/** The root object for a value that is not an object: the value becomes the field with the message key. */
export function rootFor(value: Value, messageKey: string): ValueObject {
  return { [messageKey]: value }
}
