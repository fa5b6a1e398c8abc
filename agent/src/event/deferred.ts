// An event that a program has changed, but whose fields nobody has asked for yet. Where only its size and its JSON are wanted, which is
// the rule, both come from the text that the program would parse, and no object is made.

import type { Body } from './body.ts'
import { type EventMetadata, LogEvent } from './log.ts'
import type { ValueObject } from './value.ts'

/** What becomes of events whose fields are made later, or never. It holds nothing of a single event. */
export interface Deferral {
  /** The fields, made of those with which the event came; those stay as they are. */
  make(before: ValueObject, metadata: EventMetadata): ValueObject
  /** Writes the fields as the JSON that encoders write. */
  writeJson(before: ValueObject, body: Body): void
}

export class DeferredEvent extends LogEvent {
  #deferral: Deferral | undefined
  #fields: ValueObject
  readonly #knownSize: number

  /** @param size the estimated size of the fields that will be made */
  constructor(before: ValueObject, metadata: EventMetadata, deferral: Deferral, size: number) {
    super(before, metadata)
    this.#fields = before
    this.#deferral = deferral
    this.#knownSize = size
  }

  override get size(): number {
    return this.#deferral === undefined ? super.size : this.#knownSize
  }

  /** Writes the JSON of the fields; false if they have been made since, and are to be written as those of any event. */
  writeJson(body: Body): boolean {
    if (this.#deferral === undefined) return false
    this.#deferral.writeJson(this.#fields, body)
    return true
  }

  static {
    // An accessor in place of the property of other events, which stays a property: they are read more often than anything else.
    Object.defineProperty(DeferredEvent.prototype, 'fields', {
      get(this: DeferredEvent): ValueObject {
        const deferral = this.#deferral
        if (deferral !== undefined) {
          this.#deferral = undefined
          this.#fields = deferral.make(this.#fields, this.metadata)
        }
        return this.#fields
      },
      set(this: DeferredEvent, fields: ValueObject) {
        // The constructor of the base class sets it first, when nothing of this class is there.
        if (!(#deferral in this)) return
        this.#deferral = undefined
        this.#fields = fields
      },
    })
  }
}
