// A rate a second, with a stock of tokens for bursts.

import { pause } from '../clock.ts'

export class TokenBucket {
  readonly perSecond: number
  readonly #capacity: number
  #tokens: number
  #filledAt: number | undefined

  /** @param capacity the most that may be in stock, and what is in stock at first unless `initial` says otherwise */
  constructor(perSecond: number, capacity: number = perSecond, initial: number = capacity) {
    this.perSecond = perSecond
    this.#capacity = capacity
    this.#tokens = initial
  }

  /** Fills up to a time in milliseconds; returns the tokens in stock, below zero while in debt. Always ask the same clock. */
  fill(now: number): number {
    if (this.#filledAt !== undefined && now > this.#filledAt) {
      const tokens = this.#tokens + ((now - this.#filledAt) / 1000) * this.perSecond
      this.#tokens = Math.min(this.#capacity, tokens)
    }
    this.#filledAt = now
    return this.#tokens
  }

  /**
   * Whether so many are there. More than the bucket can hold would never be: that counts as there when the bucket is full. A bucket without
   * room gives nothing.
   */
  has(wanted: number, now: number): boolean {
    return this.fill(now) >= Math.min(wanted, this.#capacity) && this.#capacity > 0
  }

  /** Takes tokens, also those that are not there yet. */
  take(count: number): void {
    this.#tokens -= count
  }

  /** Milliseconds, as of the last filling, until nothing is owed: infinite where nothing comes in. */
  get debtMs(): number {
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.perSecond) * 1000
  }

  /** Takes a token that may lie in the future; returns the milliseconds until it is there. */
  takeAfterMs(now: number = performance.now()): number {
    this.fill(now)
    this.take(1)
    return this.debtMs
  }
}

/** Those who wait for a token of a bucket, served in their order. */
export class TokenLine {
  readonly #bucket: TokenBucket
  #last: Promise<void> = Promise.resolve()

  constructor(bucket: TokenBucket) {
    this.#bucket = bucket
  }

  /** Resolves when it is the caller's turn; rejects when its signal is aborted first. */
  take(signal: AbortSignal): Promise<void> {
    const turn = this.#last.then(async () => {
      if (signal.aborted) return // leaves its token to the next
      const waitMs = this.#bucket.takeAfterMs()
      if (waitMs > 0) await pause(waitMs, signal)
    })
    this.#last = turn
    return turn.then(() => signal.throwIfAborted())
  }
}
