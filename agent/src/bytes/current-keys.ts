// The tables of names that sources currently use. Sources that may read the same pods share a table: the kernel then keeps it loaded
// between them, and its results for a chunk are valid for all of them. A source that takes too many names gets a table of its own.

import { type Kernel, usedKernel } from './kernel.ts'
import { KeyTable, type NameOwner } from './key-table.ts'
import { PlanRoom } from './plan-room.ts'

/** How long a source uses its own table that has no room for some name. */
const minMs = 60_000
/** After this time in its own table with room for all names, a source shares again. */
const returnMs = 600_000

/** The table of the sources that may read the same pods. */
export class SharedKeys {
  #table = new KeyTable()
  #since = performance.now()
  readonly #sources = new Set<CurrentKeys>()

  /** The table for a source, which may get its own table instead. */
  table(kernel: Kernel, source: CurrentKeys, now: number): KeyTable {
    this.#sources.add(source)
    if (!this.#table.lacksNames(kernel)) return this.#table
    if (this.#sources.size > 1) this.#expel(now)
    else if (now - this.#since > minMs) this.#renew(now)
    return source.own ?? this.#table
  }

  /** The source that has added the most names gets its own table, and the others a new one. */
  #expel(now: number): void {
    let largest: CurrentKeys | undefined
    for (const source of this.#sources) if (largest === undefined || source.names > largest.names) largest = source
    if (largest === undefined) return
    this.#sources.delete(largest)
    largest.useOwn(now)
    this.#renew(now)
  }

  /** The source has ended, or uses its own table: its names leave the table. */
  leave(source: CurrentKeys): void {
    if (this.#sources.delete(source) && source.names > 0) this.#renew(performance.now())
  }

  #renew(now: number): void {
    const kernel = usedKernel()
    if (kernel !== undefined) this.#table.leave(kernel)
    this.#table = new KeyTable()
    this.#since = now
    for (const source of this.#sources) source.names = 0
  }
}

/** The tables and plans of one source. */
export class CurrentKeys implements NameOwner {
  readonly plans = new PlanRoom()
  /** Number of names that the lines and programs of this source have added to its current table. */
  names = 0
  readonly #shared: SharedKeys
  #own: KeyTable | undefined
  #since = 0

  constructor(shared = new SharedKeys()) {
    this.#shared = shared
  }

  /** Its own table, unless it shares one. */
  get own(): KeyTable | undefined {
    return this.#own
  }

  table(kernel: Kernel): KeyTable {
    const now = performance.now()
    const own = this.#own
    if (own === undefined) return this.#shared.table(kernel, this, now)
    const age = now - this.#since
    if (own.lacksNames(kernel)) {
      // Arbitrary names must not block the other names of the source permanently.
      if (age > minMs) this.useOwn(now)
    } else if (age > returnMs) {
      this.#own = undefined
      this.names = 0
      return this.#shared.table(kernel, this, now)
    }
    return this.#own ?? own
  }

  /** Starts with an empty table that no other source uses. */
  useOwn(now: number): void {
    this.#own = new KeyTable()
    this.#since = now
    this.names = 0
  }

  /** Gives everything back: the source has ended. */
  close(): void {
    this.#shared.leave(this)
    this.#own = undefined
    this.names = 0
    this.plans.clear()
  }
}
