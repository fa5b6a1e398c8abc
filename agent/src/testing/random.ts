// Random choices that a seed decides: the same seed makes the same programs and events on every machine.

export class Random {
  #state: number

  constructor(seed: number) {
    // Neighbouring seeds are mixed apart, so that cases with consecutive seeds have nothing in common.
    this.#state = Math.imul((seed ^ 0x9e3779b9) >>> 0, 0x85ebca6b) >>> 0
    for (let index = 0; index < 4; index++) this.next()
  }

  /** A number from 0 up to, but not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  /** An integer from 0 up to, but not including, the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  /** An integer from the least to the most, both included. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new Error('There is nothing to choose from.')
    return choices[this.below(choices.length)] as T
  }
}
