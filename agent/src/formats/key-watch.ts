// Finds out whether the keys of objects are data: new with nearly every object. The engine makes a layout for each sequence of keys,
// which costs several times what the object does and pays off only if the sequence comes again.
// A sample of the objects leaves a number for its keys in a table of fixed size; keys that come again find it there.

import { isObject, type Value, type ValueObject } from '../event/value.ts'

/** One of this many objects is examined. */
const sampleEvery = 8
/** Objects looked at between two judgements. */
const judgeAfter = 512
/** Slots of the table at first, for the few sequences of most places, and for all others. Powers of two. */
const fewSlots = 256
const manySlots = 8192
/** With many slots, keys become data if fewer objects than the first number had known keys, and cease to be if more than the second had. */
const fewKnown = judgeAfter / 4
const manyKnown = judgeAfter / 2

export class KeyWatch {
  /** Whether nearly every object has its own keys. */
  areData = false
  /** Made with the first object. */
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

/** A number for the keys of an object, in their order, and of those in it. */
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
