// Flow control on our side: so many requests a second, and a stock of them for bursts. Waiters are served in their order.

import { pause } from '../clock.ts'

export class TokenBucket {
  readonly #perSecond: number
  readonly #burst: number
  #tokens: number
  #filledAt = performance.now()
  #line: Promise<void> = Promise.resolve()

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#tokens = burst
  }

  /** Resolves when it is the caller's turn; rejects when its signal is aborted first. */
  take(signal: AbortSignal): Promise<void> {
    const turn = this.#line.then(async () => {
      if (signal.aborted) return // leaves its token to the next
      const waitMs = this.takeAfterMs()
      if (waitMs > 0) await pause(waitMs, signal)
    })
    this.#line = turn
    return turn.then(() => signal.throwIfAborted())
  }

  /** Takes a token that may lie in the future; gives the milliseconds until it is there. */
  takeAfterMs(): number {
    const now = performance.now()
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1000) * this.#perSecond)
    this.#filledAt = now
    this.#tokens -= 1
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#perSecond) * 1000
  }
}
