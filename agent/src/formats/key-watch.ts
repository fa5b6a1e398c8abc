// Detects objects of very many key sequences, such as those whose keys are data. The engine creates a layout for each sequence, which
// costs several times as much as the object, and only pays off if the sequence recurs soon: objects of 5,000 sequences in turn cost less as
// dictionaries. A sample of the objects stores hashes of their keys in a table of fixed size, in which later ones replace earlier ones.

import { isObject, type Value, type ValueObject } from '../event/value.ts'

/** One of this many objects is examined. */
const sampleEvery = 8
/** Sampled objects between two decisions. */
const judgeAfter = 512
/** Slots of the table, a power of two: of 1,400 sequences in turn, a quarter is found in it. */
const slots = 1024
/** There are many sequences if fewer sampled objects than the first number are found, and few above the second number. */
const fewKnown = judgeAfter / 4
const manyKnown = judgeAfter / 2

export class KeyWatch {
  /** Whether there are very many sequences. */
  areData = false
  /** Created with the first object. */
  #known: Int32Array | undefined
  #untilSample = sampleEvery
  #looked = 0
  #again = 0

  look(value: Value): void {
    if (--this.#untilSample > 0 || !isObject(value)) return
    this.#untilSample = sampleEvery
    this.#known ??= new Int32Array(slots)
    const hash = hashOfKeys(value, 1)
    const slot = (hash >>> 3) & (slots - 1)
    if (this.#known[slot] === hash) this.#again++
    else this.#known[slot] = hash
    if (++this.#looked < judgeAfter) return
    if (this.#again < fewKnown) this.areData = true
    else if (this.#again > manyKnown) this.areData = false
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
