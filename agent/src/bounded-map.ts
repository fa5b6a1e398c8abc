// A cache for keys that come from data. Its entries and bytes are bounded, whatever the data contains. It has two generations: new and
// recently used entries are in the young one. When the young generation reaches half of the limit, it becomes the old one, and the
// previous old one is dropped. A hit in the young generation costs a single look-up.

export type CacheLimits<V> = {
  readonly maxEntries: number
  /** Estimated size of keys and values together. */
  readonly maxBytes: number
} & ([V] extends [number | boolean] ? { readonly sizeOf?: undefined } : { readonly sizeOf: SizeOf<V> })

/**
 * Returns the number of bytes that a value keeps alive, without those of its key. It must always return the same number
 * for a value.
 */
type SizeOf<V> = (value: V) => number

/** Bytes of an entry without its characters: its slot in the map, and the headers of key and value. */
const entryBytes = 100

/** Larger entries are not cached, because each would displace many others. */
const maxShare = 1 / 8

export class BoundedMap<V extends object | string | number | boolean> {
  readonly #maxEntries: number
  readonly #maxBytes: number
  readonly #sizeOf: SizeOf<V>
  #young = new Map<string, V>()
  #old = new Map<string, V>()
  #youngBytes = 0
  #oldBytes = 0

  constructor(limits: CacheLimits<V>) {
    this.#maxEntries = limits.maxEntries
    this.#maxBytes = limits.maxBytes
    this.#sizeOf = (limits.sizeOf as SizeOf<V> | undefined) ?? noBytes
  }

  /** Number of entries. */
  get size(): number {
    return this.#young.size + this.#old.size
  }

  /** Estimated size of all entries in bytes. */
  get bytes(): number {
    return this.#youngBytes + this.#oldBytes
  }

  get(key: string): V | undefined {
    const value = this.#young.get(key)
    return value !== undefined ? value : this.#getOld(key)
  }

  #getOld(key: string): V | undefined {
    const value = this.#old.get(key)
    if (value === undefined) return undefined
    const bytes = this.#bytesOf(key, value)
    this.#old.delete(key)
    this.#oldBytes -= bytes
    this.#add(key, value, bytes)
    return value
  }

  /** Stores a value for a key and removes the previous one. A value that is too large is not stored. */
  set(key: string, value: V): void {
    this.delete(key)
    const bytes = this.#bytesOf(key, value)
    if (bytes <= this.#maxBytes * maxShare) this.#add(key, value, bytes)
  }

  delete(key: string): void {
    const young = this.#young.get(key)
    if (young !== undefined) {
      this.#young.delete(key)
      this.#youngBytes -= this.#bytesOf(key, young)
    }
    const old = this.#old.get(key)
    if (old !== undefined) {
      this.#old.delete(key)
      this.#oldBytes -= this.#bytesOf(key, old)
    }
  }

  #add(key: string, value: V, bytes: number): void {
    if (this.#youngBytes + bytes > this.#maxBytes / 2 || this.#young.size >= this.#maxEntries / 2) {
      this.#old = this.#young
      this.#oldBytes = this.#youngBytes
      this.#young = new Map()
      this.#youngBytes = 0
    }
    this.#young.set(key, value)
    this.#youngBytes += bytes
  }

  #bytesOf(key: string, value: V): number {
    return entryBytes + 2 * key.length + this.#sizeOf(value)
  }

  clear(): void {
    this.#young = new Map()
    this.#old = new Map()
    this.#youngBytes = 0
    this.#oldBytes = 0
  }
}

function noBytes(): number {
  return 0
}

/**
 * Copies a text to separate memory, for values that outlive their event. A substring keeps the whole text alive, so ten
 * cached characters can hold a line of a megabyte. Keys need no copy, because the engine copies the keys of a map.
 */
export function ownText(text: string): string {
  // The concatenation copies the characters into a new text, of which the result is a substring.
  return ` ${text}`.slice(1)
}

/**
 * Copies the bytes of a text to separate memory. `Buffer.from` places a short text in a pool of 64 KiB, which stays in memory for as
 * long as any of its slices.
 */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}
