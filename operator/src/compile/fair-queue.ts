// Work of many tenants in one line: each has its own line, the lines take turns, and a line has a limit. So a tenant who asks for
// much waits for himself, and takes no place from the others.

export interface FairQueueLimits {
  /** Items that one tenant may have waiting. */
  readonly perKey: number
  /** Items that may wait in all. */
  readonly total: number
}

export class FairQueue<T> {
  readonly #limits: FairQueueLimits
  /** In the order in which they take turns; no line is empty. */
  readonly #lines = new Map<string, T[]>()
  #size = 0

  constructor(limits: FairQueueLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#size
  }

  /**
   * Adds an item to the line of its tenant. Returns the item that must leave for it: itself where its line is full; where all lines
   * together are, the newest of the longest line.
   */
  add(key: string, item: T): T | undefined {
    const line = this.#lines.get(key) ?? []
    if (line.length >= this.#limits.perKey) return item
    let leaves: T | undefined
    if (this.#size >= this.#limits.total) {
      let longest: T[] = line
      for (const each of this.#lines.values()) if (each.length > longest.length) longest = each
      // The namespace with the longest queue gives way.
      if (longest.length <= line.length + 1) return item
      leaves = longest.pop()
      this.#size--
    }
    if (line.length === 0) this.#lines.set(key, line)
    line.push(item)
    this.#size++
    return leaves
  }

  /** The oldest item of the tenant whose turn it is; his next one waits until all others had theirs. */
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

  /** Takes an item out, wherever it stands. */
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
