// The bytes of one outgoing request. Encoders write events into a body one by one; a batch is never a single string.
// Bodies come from a pool and return to it, because allocating a buffer of 1 MB costs as much as reading the events that fill it.

import { Spares } from './spares.ts'

export class Body {
  buffer: Buffer
  /** Bytes written so far. */
  length = 0

  constructor(capacity: number) {
    this.buffer = Buffer.allocUnsafeSlow(capacity)
  }

  /** Ensures capacity for `bytes` more. */
  reserve(bytes: number): void {
    const needed = this.length + bytes
    if (needed <= this.buffer.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.buffer.length * 2))
    this.buffer.copy(grown, 0, 0, this.length)
    this.buffer = grown
  }

  writeText(text: string): void {
    this.reserve(text.length * 3) // the maximum length of a UTF-16 unit in UTF-8
    this.length += this.buffer.write(text, this.length)
  }

  writeByte(byte: number): void {
    this.reserve(1)
    this.buffer[this.length++] = byte
  }

  writeBytes(bytes: Uint8Array): void {
    this.reserve(bytes.length)
    this.buffer.set(bytes, this.length)
    this.length += bytes.length
  }

  /** Removes everything written after `length`, for an event that could not be encoded. */
  truncate(length: number): void {
    this.length = length
  }

  /** A view of the written bytes, valid until the next write. */
  view(): Buffer {
    return this.buffer.subarray(0, this.length)
  }
}

/** Bodies in reserve, for one sink. */
export class BodyPool {
  readonly #spares: Spares<Body>
  readonly #capacity: number
  readonly #maxKept: number

  /**
   * @param capacity bytes that a new body has room for
   * @param keep maximum number of spare bodies
   * @param maxKept maximum bytes of one of them: one huge event must not keep its memory forever
   */
  constructor(capacity = 1 << 20, keep = 8, maxKept = 4 * capacity) {
    this.#capacity = capacity
    this.#maxKept = maxKept
    this.#spares = new Spares(keep)
  }

  take(): Body {
    const body = this.#spares.take() ?? new Body(this.#capacity)
    body.length = 0
    return body
  }

  give(body: Body): void {
    if (body.buffer.length <= this.#maxKept) this.#spares.give(body)
  }
}
