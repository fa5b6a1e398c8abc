// A cache with keys from data: its bytes and entries are bounded for any data. Entries are in two generations. New and recently used
// entries are in the young one. When it reaches half of the limit, it becomes the old one, and the earlier old one is dropped. A hit in
// the young generation costs one look-up only.

export type CacheLimits<V> = {
  readonly maxEntries: number
  /** Of keys and values together, as estimated. */
  readonly maxBytes: number
} & ([V] extends [number | boolean] ? { readonly sizeOf?: undefined } : { readonly sizeOf: SizeOf<V> })

/** Bytes that a value keeps alive, without those of its key. It must always return the same for a value. */
type SizeOf<V> = (value: V) => number

/** Bytes of an entry beside its characters: the place in the map, the headers of key and value. */
const entryBytes = 100

/** An entry that would take more than this part of the cache is not kept: it would cost many others their place. */
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

  /** Entries that are kept. */
  get size(): number {
    return this.#young.size + this.#old.size
  }

  /** Estimated bytes of what is kept. */
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

  /** Keeps a value, in place of one that the key had; not if it is too large to be kept. */
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
 * The same text in separate memory, for values that keep it. A piece that was cut from a text keeps the whole text alive: ten
 * characters in a cache can hold a line of a megabyte. Keys do not need it: the engine copies the keys of a map.
 */
export function ownText(text: string): string {
  // Joined, the characters are copied into a new text, of which this is a piece.
  return ` ${text}`.slice(1)
}

/**
 * The bytes of a text in separate memory, to be kept. `Buffer.from` takes a short text into a pool of 64 KiB, all of which stays as long
 * as one of its pieces does.
 */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}
