// An event that a program has changed, but whose fields nothing has read yet. Usually only its size and its JSON are needed. Both come
// from the text that the program would parse, so no object is created.

import type { Body } from './body.ts'
import { type EventMetadata, LogEvent } from './log.ts'
import { copyObject, setField, type Value, type ValueObject } from './value.ts'

/** The handling of events whose fields are created later, or never. It keeps no state of a single event, but identifies it by a key. */
export interface Deferral<K = unknown> {
  /** Makes the fields. */
  make(key: K, metadata: EventMetadata): ValueObject
  /** Writes the fields as the JSON that encoders write, but for some where it can hide them. */
  writeJson(key: K, body: Body, hidden: readonly string[]): void
  /**
   * Writes what an encoder leaves of the event: JSON, or a JSON string that holds the JSON.
   * @param choice what the encoder leaves
   * @returns false if it cannot; then nothing is written
   */
  writeChosen?(key: K, body: Body, hidden: readonly string[], choice: object, isQuoted: boolean): boolean
  /** Whether it can leave fields out. */
  readonly hides: boolean
  /** A field of the root; undefined if there is none. Left out: it is only known once the fields are made. */
  fieldOf?(key: K, name: string): Value | undefined
}

const nothingHidden: readonly string[] = []

export class DeferredEvent<K = unknown> extends LogEvent {
  #deferral: Deferral<K> | undefined
  readonly #key: K | undefined
  #fields: ValueObject | undefined
  readonly #knownSize: number
  /** Fields that the JSON omits for now; those of the event stay. */
  hidden: readonly string[] = nothingHidden

  /** @param size the estimated size of the fields that will be made */
  constructor(key: K, metadata: EventMetadata, deferral: Deferral<K>, size: number) {
    super(noFields, metadata)
    this.#key = key
    this.#deferral = deferral
    this.#knownSize = size
  }

  /** Whether `hidden` has a meaning: the fields are not made yet. */
  get hides(): boolean {
    return this.#deferral?.hides === true
  }

  override get size(): number {
    return this.#deferral === undefined ? super.size : this.#knownSize
  }

  override field(name: string): Value | undefined {
    const deferral = this.#deferral
    return deferral?.fieldOf === undefined ? super.field(name) : deferral.fieldOf(this.#key as K, name)
  }

  /** Writes the JSON of the fields; false if they have been made since, and are to be written as those of any event. */
  writeJson(body: Body): boolean {
    if (this.#deferral === undefined) return false
    this.#deferral.writeJson(this.#key as K, body, this.hidden)
    return true
  }

  /**
   * Writes what an encoder leaves of the event, as JSON or as a JSON string that holds the JSON; false if that is to be made of the fields.
   * @param choice what the encoder leaves
   */
  writeChosen(body: Body, choice: object, isQuoted: boolean): boolean {
    return this.#deferral?.writeChosen?.(this.#key as K, body, this.hidden, choice, isQuoted) === true
  }

  /** The fields without the hidden ones. */
  get shown(): ValueObject {
    const { fields, hidden } = this
    if (hidden.length === 0) return fields
    const shown = copyObject(fields)
    for (const name of hidden) setField(shown, name, undefined)
    return shown
  }

  static {
    // An accessor in place of the property of other events, which stays a property: they are read more often than anything else.
    Object.defineProperty(DeferredEvent.prototype, 'fields', {
      get(this: DeferredEvent): ValueObject {
        const deferral = this.#deferral
        if (deferral !== undefined) {
          this.#deferral = undefined
          this.#fields = deferral.make(this.#key, this.metadata)
        }
        return this.#fields as ValueObject
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

const noFields: ValueObject = Object.freeze({})
