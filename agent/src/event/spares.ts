// Spare buffers, because a new buffer costs as much as the events that fill it. Their number is limited, and a timer removes those that
// were not needed in the last seconds, for example after a burst or when the agent becomes idle.

/** Interval at which unneeded spares are removed. */
const checkMs = 10_000

export class Spares<T> {
  readonly #free: T[] = []
  readonly #max: number
  /** Lowest number of spares since the last check, which is the number of unneeded ones. */
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
