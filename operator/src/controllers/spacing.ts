// Spaces out work triggered by reports: the longer it took the last time, the later it runs again. With thousands of Pipelines and agents,
// reports arrive continuously, and an author who waits for a result needs the same thread.

export class Spacing {
  readonly #minMs: number
  readonly #maxMs: number
  /** The wait, as a multiple of the work's duration. */
  readonly #factor: number
  #tookMs = 0

  constructor({ minMs, maxMs, factor }: { minMs: number; maxMs: number; factor: number }) {
    this.#minMs = minMs
    this.#maxMs = maxMs
    this.#factor = factor
  }

  /** Delay from a new report until the work for it is done. */
  get waitMs(): number {
    return Math.min(this.#maxMs, Math.max(this.#minMs, this.#factor * this.#tookMs))
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
