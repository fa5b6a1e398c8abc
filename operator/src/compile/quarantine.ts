// Pipelines that must not be compiled again, by a hash of their content, so that a change releases them: Pipelines that took too much
// time or memory, and Pipelines that may have ended the whole operator because they were being compiled at that time.

import type { Reason } from '../api/conditions.ts'

export interface Refusal {
  readonly reason: Reason
  /** `spec`, or a part of it. */
  readonly path: string
  readonly message: string
}

export interface Quarantine {
  refusalOf(hash: string): Refusal | undefined
  /** Whether an operator stopped while it compiled this. */
  isSuspect(hash: string): boolean
  /** Records a long compile. Resolves when the record is stored. */
  begin(hash: string, id: string): Promise<void>
  /** The compile has ended, with any result. */
  end(hash: string): Promise<void>
  keep(hash: string, id: string, refusal: Refusal): void
}

export interface QuarantineEntry {
  /** `Pipeline shop/checkout`, for people who read the record. */
  readonly id: string
  /** Undefined during the compile. */
  readonly refusal: Refusal | undefined
  /** Number of operators that stopped while compiling it. */
  readonly ends: number
}

/** Maximum number of records; the oldest is dropped first, which costs one more attempt. */
export const maxEntries = 500
/** Number of operators that may stop during a compile: a single one may have stopped for another reason. */
const maxEnds = 2

/** A quarantine without its storage. */
export class MemoryQuarantine implements Quarantine {
  readonly #entries: Map<string, QuarantineEntry>
  readonly #active = new Set<string>()

  /** @param left the record of an earlier operator; the Pipelines that it was compiling are suspects */
  constructor(left: readonly (readonly [string, QuarantineEntry])[] = []) {
    this.#entries = new Map(
      left.map(([hash, entry]) => {
        if (entry.refusal !== undefined) return [hash, entry]
        const ends = entry.ends + 1
        const message =
          'an operator has stopped twice while compiling it. The operator compiles it again when it changes: make it smaller, or divide it'
        const refusal = ends < maxEnds ? undefined : ({ reason: 'CompileFailed', path: 'spec', message } as const)
        return [hash, { ...entry, refusal, ends }]
      }),
    )
  }

  refusalOf(hash: string): Refusal | undefined {
    return this.#entries.get(hash)?.refusal
  }

  isSuspect(hash: string): boolean {
    const entry = this.#entries.get(hash)
    return entry !== undefined && entry.refusal === undefined && !this.#active.has(hash)
  }

  async begin(hash: string, id: string): Promise<void> {
    this.#active.add(hash)
    this.#put(hash, { id, refusal: undefined, ends: this.#entries.get(hash)?.ends ?? 0 })
    await this.save()
  }

  async end(hash: string): Promise<void> {
    this.#active.delete(hash)
    const entry = this.#entries.get(hash)
    if (entry === undefined) return
    if (entry.refusal === undefined) this.#entries.delete(hash)
    await this.save()
  }

  keep(hash: string, id: string, refusal: Refusal): void {
    this.#put(hash, { id, refusal, ends: 0 })
    void this.save()
  }

  entries(): readonly (readonly [string, QuarantineEntry])[] {
    return [...this.#entries]
  }

  /** Stores the record, if there is a storage. Never rejects. */
  protected async save(): Promise<void> {}

  #put(hash: string, entry: QuarantineEntry): void {
    this.#entries.delete(hash)
    this.#entries.set(hash, entry)
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= maxEntries) return
      this.#entries.delete(oldest)
    }
  }
}
