// A log event: the root value, which is an object nearly always, and metadata that travels beside it.

import { type Shape, shapeOf } from './shape.ts'
import { memberSize, sizeByShape } from './size.ts'
import { copyObject, getField, type Value, type ValueObject } from './value.ts'

/** Data about an event that is not part of it: what programs reach as `%`, and secrets. Immutable; writers replace it. */
export interface EventMetadata {
  readonly value: ValueObject
  readonly secrets: Readonly<Record<string, string>>
}

export const noMetadata: EventMetadata = Object.freeze({ value: Object.freeze({}), secrets: Object.freeze({}) })

export class LogEvent {
  /** The root. Its owner may change the root object in place, and calls `changed` after it. An accessor in `DeferredEvent`. */
  declare fields: ValueObject
  metadata: EventMetadata
  #size = -1
  #shape: Shape | null | undefined

  constructor(fields: ValueObject, metadata: EventMetadata = noMetadata) {
    this.fields = fields
    this.metadata = metadata
  }

  /** Estimated size as JSON in bytes: the unit of `*_event_bytes_total` and of `batch.max_bytes`. */
  get size(): number {
    if (this.#size < 0) this.#size = sizeByShape(this.fields, this.shape)
    return this.#size
  }

  /** A field of the root; undefined if there is none. Some events need not be made for it. */
  field(name: string): Value | undefined {
    return getField(this.fields, name)
  }

  /** The shape of the root; null if its keys are not hot. */
  get shape(): Shape | null {
    if (this.#shape === undefined) this.#shape = shapeOf(this.fields)
    return this.#shape
  }

  /** Call after a change of the fields, so that size and shape are worked out again. */
  changed(): void {
    this.#size = -1
    this.#shape = undefined
  }

  /**
   * In place of `changed` where only these fields may have changed: size and shape, if they are known, follow from them.
   * @param before what the fields were, in the order of `names`
   */
  changedIn(names: readonly string[], before: readonly (Value | undefined)[]): void {
    if (this.#size < 0) {
      this.changed()
      return
    }
    let size = this.#size
    // A cold object may become hot by the change, or by the check after it.
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

  /** An event of its own with the same content. The values are shared, because values are immutable. */
  copy(): LogEvent {
    return new LogEvent(copyObject(this.fields), this.metadata)
  }

  /** A copy with the known size and shape: code that changes its fields must declare it. */
  measuredCopy(): LogEvent {
    const copy = this.copy()
    copy.#size = this.#size
    copy.#shape = this.#shape
    return copy
  }
}

/** The root for a value that is not an object: it is under the message key. */
export function rootFor(value: Value, messageKey: string): ValueObject {
  return { [messageKey]: value }
}
