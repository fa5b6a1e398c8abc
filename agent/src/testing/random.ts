// Pseudo-random choices: the same seed gives the same programs and events on all machines.

export class Random {
  #state: number

  constructor(seed: number) {
    // Mixes the seed, so that consecutive seeds give unrelated cases.
    this.#state = Math.imul((seed ^ 0x9e3779b9) >>> 0, 0x85ebca6b) >>> 0
    for (let index = 0; index < 4; index++) this.next()
  }

  /** A number from 0 (inclusive) to 1 (exclusive). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  /** An integer from 0 (inclusive) to the limit (exclusive). */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  /** An integer from the minimum to the maximum, both inclusive. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new Error('There is nothing to choose from.')
    return choices[this.below(choices.length)] as T
  }
}
