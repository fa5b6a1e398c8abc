// A rate a second, with a stock of tokens for bursts.

import { timerMs } from '../clock.ts'

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

/** Of so many turns in a line, one belongs to those that are not urgent, so that they never wait for all urgent ones. */
const turns = 5

/** Those who wait for a token of a bucket: the urgent ones before others, each in their order. */
export class TokenLine {
  readonly #bucket: TokenBucket
  readonly #urgent = new Set<() => void>()
  readonly #others = new Set<() => void>()
  /** Urgent ones served in a row while others waited. */
  #inRow = 0
  #timer: NodeJS.Timeout | undefined

  constructor(bucket: TokenBucket) {
    this.#bucket = bucket
  }

  /** Resolves when it is the caller's turn; rejects when its signal is aborted first. */
  take(signal: AbortSignal, { urgent = false } = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const line = urgent ? this.#urgent : this.#others
      const turn = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      // The token is for the next one.
      const leave = () => {
        line.delete(turn)
        reject(signal.reason)
        this.#serve()
      }
      signal.addEventListener('abort', leave, { once: true })
      line.add(turn)
      this.#serve()
    })
  }

  #serve(): void {
    clearTimeout(this.#timer)
    for (;;) {
      const line = this.#next()
      const [turn] = line
      if (turn === undefined) return
      const tokens = this.#bucket.fill(performance.now())
      if (tokens < 1) {
        const waitMs = ((1 - tokens) / this.#bucket.perSecond) * 1000
        this.#timer = setTimeout(() => this.#serve(), timerMs(waitMs))
        return
      }
      this.#inRow = line === this.#urgent && this.#others.size > 0 ? this.#inRow + 1 : 0
      this.#bucket.take(1)
      line.delete(turn)
      turn()
    }
  }

  #next(): Set<() => void> {
    const isTheirs = this.#inRow >= turns - 1 && this.#others.size > 0
    return this.#urgent.size > 0 && !isTheirs ? this.#urgent : this.#others
  }
}
