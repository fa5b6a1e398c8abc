// Rate limits per second, with stored tokens for bursts.

import { timerMs } from '../clock.ts'

export class TokenBucket {
  readonly perSecond: number
  readonly #capacity: number
  #tokens: number
  #filledAt: number | undefined

  /** @param capacity maximum number of stored tokens, and by default also the initial number */
  constructor(perSecond: number, capacity: number = perSecond, initial: number = capacity) {
    this.perSecond = perSecond
    this.#capacity = capacity
    this.#tokens = initial
  }

  /** Adds tokens up to a time in milliseconds. Returns the stored tokens, which are negative while in debt. Always use the same clock. */
  fill(now: number): number {
    if (this.#filledAt !== undefined && now > this.#filledAt) {
      const tokens = this.#tokens + ((now - this.#filledAt) / 1000) * this.perSecond
      this.#tokens = Math.min(this.#capacity, tokens)
    }
    this.#filledAt = now
    return this.#tokens
  }

  /**
   * Whether a number of tokens is available. A number beyond the capacity is available when the bucket is full. A bucket with no capacity
   * never has tokens.
   */
  has(wanted: number, now: number): boolean {
    return this.fill(now) >= Math.min(wanted, this.#capacity) && this.#capacity > 0
  }

  /** Takes tokens, even if they are not available yet. */
  take(count: number): void {
    this.#tokens -= count
  }

  /** Milliseconds from the last fill until the debt is paid; infinite if the rate is zero. */
  get debtMs(): number {
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.perSecond) * 1000
  }

  /** Takes a token, possibly in advance. Returns the milliseconds until it is available. */
  takeAfterMs(now: number = performance.now()): number {
    this.fill(now)
    this.take(1)
    return this.debtMs
  }
}

/** One of this many turns in a queue goes to a caller that is not urgent, so that urgent ones cannot block it forever. */
const turns = 5

/** Why a caller is urgent: someone waits for the result of a change, or holds a connection open. Both kinds take turns. */
export type Urgency = 'result' | 'connection'

/** Callers that wait for a token of a bucket: urgent ones first, otherwise in order. */
export class TokenLine {
  readonly #bucket: TokenBucket
  readonly #results = new Set<() => void>()
  readonly #connections = new Set<() => void>()
  /** The urgent callers served last. */
  #last: ReadonlySet<() => void> | undefined
  readonly #others = new Set<() => void>()
  /** Number of consecutive urgent callers served while others waited. */
  #inRow = 0
  #timer: NodeJS.Timeout | undefined

  constructor(bucket: TokenBucket) {
    this.#bucket = bucket
  }

  /** Resolves when it is the caller's turn. Rejects if its signal aborts first. */
  take(signal: AbortSignal, { urgent }: { readonly urgent?: Urgency | undefined } = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const line = urgent === undefined ? this.#others : urgent === 'result' ? this.#results : this.#connections
      const turn = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      // Leave the token to the next caller.
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
      const isUrgent = line !== this.#others
      if (isUrgent) this.#last = line
      this.#inRow = isUrgent && this.#others.size > 0 ? this.#inRow + 1 : 0
      this.#bucket.take(1)
      line.delete(turn)
      turn()
    }
  }

  #next(): Set<() => void> {
    const isTheirs = this.#inRow >= turns - 1 && this.#others.size > 0
    if (isTheirs) return this.#others
    const [first, second] =
      this.#last === this.#results ? [this.#connections, this.#results] : [this.#results, this.#connections]
    return first.size > 0 ? first : second.size > 0 ? second : this.#others
  }
}
