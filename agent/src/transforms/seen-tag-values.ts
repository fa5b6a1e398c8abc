// The tag values that have passed so far. Their number for each tag and their total size are limited, so that neither many values nor many
// or long tags exhaust the memory.

import type { TagValue } from '../event/metric.ts'

/** Maximum estimated size of all values together. */
const maxBytes = 16 << 20

/** Bytes of a value or tag without its characters. */
const entryBytes = 64

export class SeenTagValues {
  readonly #values = new Map<string, Set<string>>()
  readonly #valueLimit: number
  readonly #onFull: (tag: string) => void
  #bytes = 0

  /** @param onFull called once for each tag that reaches the limit */
  constructor(valueLimit: number, onFull: (tag: string) => void) {
    this.#valueLimit = valueLimit
    this.#onFull = onFull
  }

  /** Estimated size of all values in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Returns whether the value is within the limit, and counts it if so. A bare tag is always within the limit. */
  admit(tag: string, value: TagValue): boolean {
    if (!this.hasRoom(tag, value)) return false
    if (typeof value === 'string') this.#add(tag, value)
    else for (const item of value ?? []) if (item !== null) this.#add(tag, item)
    return true
  }

  /** Whether `admit` would return true. */
  hasRoom(tag: string, value: TagValue): boolean {
    if (value === null) return true
    const seen = this.#values.get(tag)
    if (typeof value === 'string') return seen?.has(value) === true || this.#takes(tag, seen, 1, value.length)
    const unseen = new Set<string>()
    let characters = 0
    for (const item of value) {
      if (item === null || seen?.has(item) || unseen.has(item)) continue
      unseen.add(item)
      characters += item.length
    }
    return unseen.size === 0 || this.#takes(tag, seen, unseen.size, characters)
  }

  #takes(tag: string, seen: ReadonlySet<string> | undefined, count: number, characters: number): boolean {
    if ((seen?.size ?? 0) + count > this.#valueLimit) return false
    const ofTag = seen === undefined ? entryBytes + 2 * tag.length : 0
    return this.#bytes + ofTag + count * entryBytes + 2 * characters <= maxBytes
  }

  #add(tag: string, value: string): void {
    let seen = this.#values.get(tag)
    if (seen === undefined) {
      seen = new Set()
      this.#values.set(tag, seen)
      this.#bytes += entryBytes + 2 * tag.length
    }
    if (seen.has(value)) return
    seen.add(value)
    this.#bytes += entryBytes + 2 * value.length
    if (seen.size === this.#valueLimit) this.#onFull(tag)
  }
}
