// The bytes of one outgoing request. Encoders write events into a body one after the other; a batch is never one string.
// Bodies come from a pool and go back to it: a fresh buffer of 1 MB costs as much as reading the events that fill it.

export class Body {
  buffer: Buffer
  /** Bytes written so far. */
  length = 0

  constructor(capacity: number) {
    this.buffer = Buffer.allocUnsafeSlow(capacity)
  }

  /** Makes room for `bytes` more. */
  reserve(bytes: number): void {
    const needed = this.length + bytes
    if (needed <= this.buffer.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.buffer.length * 2))
    this.buffer.copy(grown, 0, 0, this.length)
    this.buffer = grown
  }

  writeText(text: string): void {
    this.reserve(text.length * 3) // the longest that UTF-8 makes of a UTF-16 unit
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

  /** Takes back what was written after `length`, for an event that could not be encoded. */
  truncate(length: number): void {
    this.length = length
  }

  /** A view of the written bytes, valid until the next write. */
  view(): Buffer {
    return this.buffer.subarray(0, this.length)
  }
}

/** Bodies returned between two checks of how many are needed. */
const lookAfter = 64

/** Bodies in reserve, for one sink. After a time with many requests it keeps no more than those that are used. */
export class BodyPool {
  readonly #free: Body[] = []
  /** Smallest number of idle bodies since the last check: these were not needed. */
  #unused = 0
  #untilLook = lookAfter
  readonly #capacity: number
  readonly #keep: number

  /**
   * @param capacity bytes that a new body has room for
   * @param keep bodies kept when idle
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
    if (--this.#untilLook > 0) return
    this.#untilLook = lookAfter
    this.#free.splice(0, this.#unused)
    this.#unused = this.#free.length
  }
}
