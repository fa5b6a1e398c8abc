// The table of names that sources currently use. Sources that may read the same pods share a table: the kernel then keeps it loaded
// between them, and its results for a chunk are valid for all of them.

import type { Kernel } from './kernel.ts'
import { KeyTable } from './key-table.ts'

/** How long a table that has no room for some name stays in use. */
const minMs = 60_000

export class CurrentKeys {
  #table = new KeyTable()
  #since = performance.now()

  /**
   * A pod with arbitrary member names must not block the names of all other pods permanently, so a table
   * without room for some name is replaced after some time.
   */
  table(kernel: Kernel): KeyTable {
    const now = performance.now()
    if (this.#table.lacksNames(kernel) && now - this.#since > minMs) {
      this.#table = new KeyTable()
      this.#since = now
    }
    return this.#table
  }
}
