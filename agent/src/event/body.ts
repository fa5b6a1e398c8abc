// The bytes of one outgoing request. Encoders write events into a body one by one; a batch is never a single string.
// Bodies come from a pool and return to it, because allocating a buffer of 1 MB costs as much as reading the events that fill it.

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

/** Number of returned bodies between two checks of how many are needed. */
const checkInterval = 64

/** The spare bodies of one sink. After a burst of requests, the pool releases the bodies that are no longer needed. */
export class BodyPool {
  readonly #free: Body[] = []
  /** Minimum number of idle bodies since the last check, which were therefore not needed. */
  #unused = 0
  #untilCheck = checkInterval
  readonly #capacity: number
  readonly #keep: number

  /**
   * @param capacity initial capacity of a body, in bytes
   * @param keep maximum number of idle bodies
   */
  constructor(capacity = 1 << 20, keep = 8) {
    this.#capacity = capacity
    this.#keep = keep
  }

  take(): Body {
    const body = this.#free.pop() ?? new Body(this.#capacity)
    if (this.#free.length < this.#unused) this.#unused = this.#free.length
    body.length = 0
    return body
  }

  give(body: Body): void {
    // One huge event must not keep its memory forever.
    if (this.#free.length < this.#keep && body.buffer.length <= this.#capacity * 4) this.#free.push(body)
    if (--this.#untilCheck > 0) return
    this.#untilCheck = checkInterval
    this.#free.splice(0, this.#unused)
    this.#unused = this.#free.length
  }
}
