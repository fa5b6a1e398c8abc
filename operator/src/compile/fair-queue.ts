// A queue for the work of many tenants: each has its own bounded line, and the one that was served longest ago is next. So a tenant with
// many requests only delays itself.

export interface FairQueueLimits {
  /** Maximum number of waiting items per tenant. */
  readonly perKey: number
  /** Items that may wait in all. */
  readonly total: number
}

/** Number of tenants whose last turn is remembered. */
const maxServed = 1_024

export class FairQueue<T> {
  readonly #limits: FairQueueLimits
  /** No line is empty. */
  readonly #lines = new Map<string, T[]>()
  /** When each tenant was last served, as a count, the latest one last. A line that empties does not make its tenant a new one. */
  readonly #servedAt = new Map<string, number>()
  #served = 0
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

  /** The oldest item of the tenant that was served longest ago. @param isFree whether the tenant may be served now */
  take(isFree: (key: string) => boolean = () => true): T | undefined {
    let next: string | undefined
    let longestAgo = Number.POSITIVE_INFINITY
    for (const key of this.#lines.keys()) {
      const at = this.#servedAt.get(key) ?? 0
      if (at < longestAgo && isFree(key)) [next, longestAgo] = [key, at]
    }
    const line = next === undefined ? undefined : this.#lines.get(next)
    if (next === undefined || line === undefined) return undefined
    this.#servedAt.delete(next)
    this.#servedAt.set(next, ++this.#served)
    const [first] = this.#servedAt.keys()
    if (this.#servedAt.size > maxServed && first !== undefined) this.#servedAt.delete(first)
    if (line.length === 1) this.#lines.delete(next)
    this.#size--
    return line.shift()
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
