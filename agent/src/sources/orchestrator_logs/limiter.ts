// Limits how fast lines are read: lines and bytes a second, with a burst of one second's worth. Lines over the limit are
// dropped and counted, or wait in their file.

import type { RateLimitOptions } from '../../component.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'

export class Limiter {
  readonly onLimit: 'drop' | 'lag'
  readonly #lines: TokenBucket | undefined
  readonly #bytes: TokenBucket | undefined

  constructor(options: RateLimitOptions) {
    this.onLimit = options.onLimit
    this.#lines = options.lines === undefined ? undefined : new TokenBucket(options.lines)
    this.#bytes = options.bytes === undefined ? undefined : new TokenBucket(options.bytes)
  }

  /** Whether a limit is 0, which no line satisfies. */
  get isClosed(): boolean {
    return this.#lines?.perSecond === 0 || this.#bytes?.perSecond === 0
  }

  /** Charges one line if the limit allows it; false if not. */
  takes(bytes: number, now: number): boolean {
    if (this.#lines !== undefined && !this.#lines.has(1, now)) return false
    if (this.#bytes !== undefined && !this.#bytes.has(bytes, now)) return false
    this.#lines?.take(1)
    this.#bytes?.take(bytes)
    return true
  }

  /** Charges lines and bytes already read, even beyond the limit; returns the milliseconds until the debt is paid. */
  owe(lines: number, bytes: number, now: number): number {
    this.#lines?.fill(now)
    this.#bytes?.fill(now)
    this.#lines?.take(lines)
    this.#bytes?.take(bytes)
    return Math.max(this.#lines?.debtMs ?? 0, this.#bytes?.debtMs ?? 0)
  }
}
