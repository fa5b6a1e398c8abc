// Writes events that are still lines into a sink's request, and marks each like any other event.

import type { ByteBatch } from '../bytes/byte-batch.ts'
import type { ByteTarget } from '../bytes/byte-target.ts'
import { allFields, type FieldSelection } from '../bytes/form.ts'
import type { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import type { AnyEvent } from './batcher.ts'
import type { OpenRequest } from './request.ts'

/** How events that are plain JSON are separated in a body. */
export interface JsonFrames {
  /** The byte after each event; undefined if there is none. It must not be 0. */
  readonly delimiter: number | undefined
  /** Whether the byte only separates events and belongs to none of them. */
  readonly isSeparator: boolean
  /** The fields to write; all by default. */
  readonly fields?: FieldSelection | undefined
}

export class LineTarget implements ByteTarget {
  readonly suffix: number
  readonly fields: FieldSelection
  prefix: Uint8Array | undefined
  readonly #isSeparator: boolean
  readonly #encode: (events: readonly AnyEvent[], from: number, to: number, request: OpenRequest) => void
  #request: OpenRequest | undefined

  /** @param encode writes events that are already objects */
  constructor(
    frames: JsonFrames,
    encode: (events: readonly AnyEvent[], from: number, to: number, request: OpenRequest) => void,
  ) {
    this.suffix = frames.delimiter ?? 0
    this.fields = frames.fields ?? allFields
    this.#isSeparator = frames.isSeparator
    this.#encode = encode
  }

  /** Appends events `[from, to)` of a batch to a request. */
  encode(batch: ByteBatch, from: number, to: number, request: OpenRequest): void {
    this.#request = request
    batch.write(from, to, this)
    this.#request = undefined
  }

  get body(): Body {
    return (this.#request as OpenRequest).body
  }

  begin(): void {
    if (this.#isSeparator && (this.#request as OpenRequest).count > 0) this.body.writeByte(this.suffix)
  }

  written(start: number, ends: Int32Array, count: number, shift: number): void {
    const request = this.#request as OpenRequest
    const width = this.suffix === 0 ? 0 : 1
    request.markEach(start, ends, count, start - shift, width, this.#isSeparator ? 0 : width)
    // Remove the separator after the last event; `begin` writes it before the next one.
    if (this.#isSeparator) request.body.length -= width
  }

  object(event: LogEvent): void {
    this.#encode([event], 0, 1, this.#request as OpenRequest)
  }
}
