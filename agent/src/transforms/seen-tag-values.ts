// The values of tags that have passed so far: a number for each tag, and bytes for all of them, so neither many values nor many or long
// tags fill the memory.

import type { TagValue } from '../event/metric.ts'

/** Of all values together, as estimated. */
const maxBytes = 16 << 20

/** Of a value or tag beside its characters. */
const entryBytes = 64

export class SeenTagValues {
  readonly #values = new Map<string, Set<string>>()
  readonly #valueLimit: number
  readonly #onFull: (tag: string) => void
  #bytes = 0

  /** @param onFull is called once for each tag that has as many values as may pass */
  constructor(valueLimit: number, onFull: (tag: string) => void) {
    this.#valueLimit = valueLimit
    this.#onFull = onFull
  }

  /** Estimated bytes of what is kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether the value is within the limit; it counts from now on. A bare tag always is. */
  admit(tag: string, value: TagValue): boolean {
    if (!this.hasRoom(tag, value)) return false
    if (typeof value === 'string') this.#add(tag, value)
    else for (const item of value ?? []) if (item !== null) this.#add(tag, item)
    return true
  }

  /** Whether `admit` would say yes. */
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
