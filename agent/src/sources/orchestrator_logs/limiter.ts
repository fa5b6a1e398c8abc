// How fast lines may be read: so many lines and bytes a second, with room for one second's worth at once. Lines over the
// limit are dropped and counted, or wait in their file.

import type { RateLimitOptions } from '../../component.ts'

export class Limiter {
  readonly onLimit: 'drop' | 'lag'
  readonly #lines: Bucket | undefined
  readonly #bytes: Bucket | undefined

  constructor(options: RateLimitOptions) {
    this.onLimit = options.onLimit
    this.#lines = options.lines === undefined ? undefined : new Bucket(options.lines)
    this.#bytes = options.bytes === undefined ? undefined : new Bucket(options.bytes)
  }

  /** Takes one line if it fits. */
  takes(bytes: number, now: number): boolean {
    if (this.#lines !== undefined && !this.#lines.has(1, now)) return false
    if (this.#bytes !== undefined && !this.#bytes.has(bytes, now)) return false
    this.#lines?.take(1)
    this.#bytes?.take(bytes)
    return true
  }

  /** Takes what has been read, whatever it is; gives the milliseconds until the debt is paid. */
  owe(lines: number, bytes: number, now: number): number {
    this.#lines?.has(0, now)
    this.#bytes?.has(0, now)
    this.#lines?.take(lines)
    this.#bytes?.take(bytes)
    return Math.max(this.#lines?.debtMs ?? 0, this.#bytes?.debtMs ?? 0)
  }
}

class Bucket {
  readonly #perSecond: number
  #tokens: number
  #filledAt: number | undefined

  constructor(perSecond: number) {
    this.#perSecond = perSecond
    this.#tokens = perSecond
  }

  has(wanted: number, now: number): boolean {
    if (this.#filledAt !== undefined && now > this.#filledAt) {
      const tokens = this.#tokens + ((now - this.#filledAt) / 1000) * this.#perSecond
      this.#tokens = Math.min(this.#perSecond, tokens)
    }
    this.#filledAt = now
    // A single line longer than a second's worth would never fit: it passes when the bucket is full.
    return this.#tokens >= Math.min(wanted, this.#perSecond)
  }

  take(taken: number): void {
    this.#tokens -= taken
  }

  get debtMs(): number {
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#perSecond) * 1000
  }
}
