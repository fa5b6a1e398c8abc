// Joins the parts of a line that the container runtime has split. Parts stay bytes, because a split may divide a
// character. An incomplete line knows the position from which its file must be read again.

import type { Timestamp } from '../../event/timestamp.ts'
import { type Bytes, stringFromBytes } from '../../event/value.ts'

export interface MergeLimit {
  readonly maxBytes: number
  readonly action: 'drop' | 'truncate'
}

const expiryMs = 30_000
/**
 * Without a limit in the options, parts are passed on at this size, because a container that never ends its line would fill the
 * memory.
 */
const maxUnlimitedBytes = 4 * 1024 * 1024
const truncatedMark = Buffer.from('..TRUNCATED')
const none = Buffer.alloc(0)

export type Merged = { readonly text: string | Bytes; readonly truncated: boolean } | 'too_long'

/** The parts of the current line of one stream of one file. */
export class PartialLine {
  readonly #limit: MergeLimit | undefined
  /** The parts so far, with room for more. Separate objects for many short parts would need many times their bytes. */
  #text = none
  #bytes = 0
  #since = 0
  #over = false
  /** Time of the first part. */
  timestamp: Timestamp | undefined
  /** Position of the first part in the file. */
  start = 0

  constructor(limit: MergeLimit | undefined) {
    this.#limit = limit
  }

  get pending(): boolean {
    return this.timestamp !== undefined
  }

  /** Whether the parts so far must be passed on before the line ends. */
  get isFull(): boolean {
    return this.#limit === undefined && this.#bytes >= maxUnlimitedBytes
  }

  /** Takes one more part. The bytes are copied. */
  add(bytes: Uint8Array, timestamp: Timestamp, start: number, now: number): void {
    if (this.timestamp === undefined) {
      this.timestamp = timestamp
      this.start = start
      this.#since = now
    }
    if (this.#over) return
    const limit = this.#limit
    const length = this.#bytes + bytes.length
    if (limit === undefined || length <= limit.maxBytes) {
      this.#append(bytes)
      return
    }
    this.#over = true
    if (limit.action === 'truncate') this.#append(bytes.subarray(0, limit.maxBytes - this.#bytes))
    else this.#text = none
  }

  #append(bytes: Uint8Array): void {
    const length = this.#bytes + bytes.length
    if (length > this.#text.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#text.length))
      this.#text.copy(larger, 0, 0, this.#bytes)
      this.#text = larger
    }
    this.#text.set(bytes, this.#bytes)
    this.#bytes = length
  }

  /** Continues the parts from the previous file of a rotation. */
  continueFrom(before: PartialLine): void {
    this.#text = before.#text
    this.#bytes = before.#bytes
    this.#since = before.#since
    this.#over = before.#over
    this.timestamp = before.timestamp
    this.start = 0
    before.#text = none
    before.take()
  }

  /**
   * Whether the next part is overdue. A reader that is behind still expects it, because it may already be in the file.
   */
  expired(now: number, isBehind: () => boolean): boolean {
    if (this.timestamp === undefined || now - this.#since < expiryMs) return false
    if (!isBehind()) return true
    this.#since = now
    return false
  }

  /** Returns the joined text and starts a new line. */
  take(): Merged {
    const over = this.#over
    const text = this.#text.subarray(0, this.#bytes)
    this.#text = none
    this.#bytes = 0
    this.#over = false
    this.timestamp = undefined
    if (over && this.#limit?.action === 'drop') return 'too_long'
    return { text: stringFromBytes(over ? Buffer.concat([text, truncatedMark]) : text), truncated: over }
  }
}

/** Bytes of a string value. */
export function bytesOf(text: string | Bytes): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : text.bytes
}
