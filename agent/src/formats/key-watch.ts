// Detects objects whose keys are data, new with nearly every object. The engine creates a layout for each key sequence, which costs
// several times as much as the object, and only pays off if the sequence recurs. A sample of the objects stores hashes of their keys
// in a fixed-size table, where recurring keys are found.

import { isObject, type Value, type ValueObject } from '../event/value.ts'

/** One of this many objects is examined. */
const sampleEvery = 8
/** Sampled objects between two decisions. */
const judgeAfter = 512
/**
 * Initial slots of the table, enough for the few sequences of most locations, and slots for all others. Powers of two.
 */
const fewSlots = 256
const manySlots = 8192
/**
 * With many slots: keys become data if fewer sampled objects than the first number had known keys, and stop being data above the second
 * number.
 */
const fewKnown = judgeAfter / 4
const manyKnown = judgeAfter / 2

export class KeyWatch {
  /** Whether nearly every object has its own keys. */
  areData = false
  /** Created with the first object. */
  #known: Int32Array | undefined
  #untilSample = sampleEvery
  #looked = 0
  #again = 0

  look(value: Value): void {
    if (--this.#untilSample > 0 || !isObject(value)) return
    this.#untilSample = sampleEvery
    this.#known ??= new Int32Array(fewSlots)
    const hash = hashOfKeys(value, 1)
    const slot = (hash >>> 3) & (this.#known.length - 1)
    if (this.#known[slot] === hash) this.#again++
    else this.#known[slot] = hash
    if (++this.#looked < judgeAfter) return
    if (this.#again < fewKnown) {
      if (this.#known.length === manySlots) this.areData = true
      else this.#known = new Int32Array(manySlots)
    } else if (this.#again > manyKnown) this.areData = false
    this.#looked = 0
    this.#again = 0
  }
}

/** A hash of an object's keys in their order, including nested keys. */
function hashOfKeys(object: ValueObject, depth: number): number {
  let hash = depth
  for (const key in object) {
    for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
    hash = Math.imul(hash ^ 0x3a, 0x01000193)
    const value = object[key]
    if (depth < maxDepth && isObject(value)) hash = Math.imul(hash ^ hashOfKeys(value, depth + 1), 0x01000193)
  }
  return hash
}

const maxDepth = 4
