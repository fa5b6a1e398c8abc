// The plans of one source. Their number and bytes are limited, because a program may have long constants and a node many files, so a
// pipeline only displaces plans of its own. A plan that no form or origin needs any more, such as after a reload, frees its share.

/** A plan has a form and the fields of an origin. These are enough for a few programs and some hundred containers. */
const maxPlans = 4096
const maxBytes = 8 << 20

interface Kept {
  readonly bytes: number
  /** Makes the owner of the plan forget it. */
  forget(): void
}

/** Called with the function that gives the room of a plan back, after the plan was collected. */
const collected = new FinalizationRegistry<() => void>((remove) => remove())

export class PlanRoom {
  /** The oldest first. */
  readonly #kept = new Set<Kept>()
  #bytes = 0

  /** Number of plans that are kept. */
  get count(): number {
    return this.#kept.size
  }

  /** Their estimated size. */
  get bytes(): number {
    return this.#bytes
  }

  /** Keeps a plan, and forgets the oldest ones if there is no room. `forget` must not refer to the plan. */
  add(plan: object, bytes: number, forget: () => void): void {
    const kept = { bytes, forget }
    this.#kept.add(kept)
    this.#bytes += bytes
    collected.register(plan, () => this.#remove(kept), kept)
    for (const oldest of this.#kept) {
      if ((this.#bytes <= maxBytes && this.#kept.size <= maxPlans) || oldest === kept) return
      this.#forget(oldest)
    }
  }

  /** Forgets all plans. */
  clear(): void {
    for (const kept of this.#kept) this.#forget(kept)
  }

  #forget(kept: Kept): void {
    this.#remove(kept)
    collected.unregister(kept)
    kept.forget()
  }

  #remove(kept: Kept): void {
    if (this.#kept.delete(kept)) this.#bytes -= kept.bytes
  }
}
