// The table of names that sources use at the moment. Sources that may read the same pods use the same one, so that the kernel keeps it
// from one to the next, and what it has read of lines for one of them holds for the others.

import type { Kernel } from './kernel.ts'
import { KeyTable } from './key-table.ts'

/** How long a table is used that has no room any more. */
const minMs = 60_000

export class CurrentKeys {
  #table = new KeyTable()
  #since = performance.now()

  /** One pod whose names are data must not exclude those of all others permanently: a full table is replaced after some time. */
  table(kernel: Kernel): KeyTable {
    const now = performance.now()
    if (this.#table.isFull(kernel) && now - this.#since > minMs) {
      this.#table = new KeyTable()
      this.#since = now
    }
    return this.#table
  }
}
