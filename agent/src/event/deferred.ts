// An event that a program has changed, but whose fields nothing has read yet. Usually only its size and its JSON are needed. Both can
// be derived from the text that the program would parse, so no object is created.

import type { Body } from './body.ts'
import { type EventMetadata, LogEvent } from './log.ts'
import { copyObject, setField, type Value, type ValueObject } from './value.ts'

/** Handles events whose fields are created later or never. It has no state for a single event; a key identifies the event. */
export interface Deferral<K = unknown> {
  /** Creates the fields. */
  make(key: K, metadata: EventMetadata): ValueObject
  /** Writes the fields as the JSON that encoders write, without the hidden fields if `hides` is true. */
  writeJson(key: K, body: Body, hidden: readonly string[]): void
  /**
   * Writes the part of the event that an encoder selects, as JSON or as a JSON string that contains the JSON.
   * @param choice the encoder's selection
   * @returns false if it cannot, in which case it writes nothing
   */
  writeChosen?(key: K, body: Body, hidden: readonly string[], choice: object, isQuoted: boolean): boolean
  /** Whether it can omit fields. */
  readonly hides: boolean
  /** A field of the root; undefined if it does not exist. A deferral without this method cannot know it before creating the fields. */
  fieldOf?(key: K, name: string): Value | undefined
}

const nothingHidden: readonly string[] = []

export class DeferredEvent<K = unknown> extends LogEvent {
  #deferral: Deferral<K> | undefined
  readonly #key: K | undefined
  #fields: ValueObject | undefined
  readonly #knownSize: number
  /** Fields that the JSON omits for now. The event keeps them. */
  hidden: readonly string[] = nothingHidden

  /** @param size the estimated size of the fields, once created */
  constructor(key: K, metadata: EventMetadata, deferral: Deferral<K>, size: number) {
    super(noFields, metadata)
    this.#key = key
    this.#deferral = deferral
    this.#knownSize = size
  }

  /** Whether `hidden` has an effect, which is the case until the fields are created. */
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

  /** Writes the JSON of the fields. Returns false if the fields exist by now; then write them as for any other event. */
  writeJson(body: Body): boolean {
    if (this.#deferral === undefined) return false
    this.#deferral.writeJson(this.#key as K, body, this.hidden)
    return true
  }

  /**
   * Writes the part of the event that an encoder selects, as JSON or as a JSON string that contains the JSON.
   * @param choice the encoder's selection
   * @returns false if it cannot; then the encoder must use the fields
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
    // An accessor only for this class. Other events keep a plain property, because nothing is read more often than `fields`.
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
        // The constructor of the base class assigns `fields` before the members of this class exist.
        if (!(#deferral in this)) return
        this.#deferral = undefined
        this.#fields = fields
      },
    })
  }
}

const noFields: ValueObject = Object.freeze({})
