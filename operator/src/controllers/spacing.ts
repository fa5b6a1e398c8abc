// How soon work that reports bring about is done again: the longer it took the last time, the later. With thousands of Pipelines and agents
// reports come all the time, and an author who waits for an answer needs the same thread.

export class Spacing {
  readonly #leastMs: number
  readonly #mostMs: number
  /** The wait, in times of what the work took. */
  readonly #factor: number
  #tookMs = 0

  constructor({ leastMs, mostMs, factor }: { leastMs: number; mostMs: number; factor: number }) {
    this.#leastMs = leastMs
    this.#mostMs = mostMs
    this.#factor = factor
  }

  /** Time from something new until the work is done for it. */
  get waitMs(): number {
    return Math.min(this.#mostMs, Math.max(this.#leastMs, this.#factor * this.#tookMs))
  }

  async measured<T>(work: () => T | Promise<T>): Promise<T> {
    const begunAt = performance.now()
    try {
      return await work()
    } finally {
      this.#tookMs = performance.now() - begunAt
    }
  }
}
