// A queue for the work of many tenants: each has its own bounded line, and the lines take turns. So a tenant with many requests
// only delays itself.

export interface FairQueueLimits {
  /** Maximum number of waiting items per tenant. */
  readonly perKey: number
  /** Items that may wait in all. */
  readonly total: number
}

export class FairQueue<T> {
  readonly #limits: FairQueueLimits
  /** In the order of their turns; no line is empty. */
  readonly #lines = new Map<string, T[]>()
  #size = 0

  constructor(limits: FairQueueLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#size
  }

  /**
   * Adds an item to the line of its tenant. Returns the item that must be removed for it: the item itself if its line is full; if
   * the whole queue is full, the newest item of the longest line.
   */
  add(key: string, item: T): T | undefined {
    const line = this.#lines.get(key) ?? []
    if (line.length >= this.#limits.perKey) return item
    let leaves: T | undefined
    if (this.#size >= this.#limits.total) {
      let longest: T[] = line
      for (const each of this.#lines.values()) if (each.length > longest.length) longest = each
      // The namespace with the longest line loses an item.
      if (longest.length <= line.length + 1) return item
      leaves = longest.pop()
      this.#size--
    }
    if (line.length === 0) this.#lines.set(key, line)
    line.push(item)
    this.#size++
    return leaves
  }

  /** The oldest item of the tenant whose turn it is; its next one waits until all others had their turn. */
  take(): T | undefined {
    for (const [key, line] of this.#lines) {
      const item = line.shift()
      this.#lines.delete(key)
      if (line.length > 0) this.#lines.set(key, line)
      if (item === undefined) continue
      this.#size--
      return item
    }
    return undefined
  }

  /** Removes an item from any position. */
  remove(key: string, item: T): void {
    const line = this.#lines.get(key)
    const place = line?.indexOf(item) ?? -1
    if (line === undefined || place < 0) return
    line.splice(place, 1)
    this.#size--
    if (line.length === 0) this.#lines.delete(key)
  }

  clear(): T[] {
    const all = [...this.#lines.values()].flat()
    this.#lines.clear()
    this.#size = 0
    return all
  }
}
