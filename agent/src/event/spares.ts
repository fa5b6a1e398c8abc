// Buffers in reserve, because new ones cost as much as the events that fill them. A limited number is kept, and only as many as were used
// in the last seconds: after a burst, and when an agent becomes idle, the others go.

/** Interval between two checks of how many spares were needed. */
const checkMs = 10_000

export class Spares<T> {
  readonly #free: T[] = []
  readonly #max: number
  /** Lowest number of spares since the last check: that many were not needed. */
  #unused = 0
  #timer: NodeJS.Timeout | undefined

  constructor(max: number) {
    this.#max = max
  }

  take(): T | undefined {
    const spare = this.#free.pop()
    if (this.#free.length < this.#unused) this.#unused = this.#free.length
    return spare
  }

  give(spare: T): void {
    if (this.#free.length === this.#max) return
    this.#free.push(spare)
    this.#timer ??= setTimeout(this.#check, checkMs).unref()
  }

  readonly #check = (): void => {
    this.#free.splice(0, this.#unused)
    this.#unused = this.#free.length
    this.#timer = this.#unused === 0 ? undefined : setTimeout(this.#check, checkMs).unref()
  }
}
