// Results that readers of the same lines share. The first reader stores its result in a place that belongs to the chunk of the lines.

/** The result that one reader of lines leaves for the others. */
export interface SharedResult {
  readonly bytes: number
  /** Releases its memory. */
  release(): void
}

/** The place exists as long as the lines. */
export interface ResultPlace {
  readonly result: SharedResult | undefined
  /** Whether other readers will read the lines, and none of them has stored a result. */
  readonly isWanted: boolean
  /** Returns false if there is no room for the result, which then stays with the caller. */
  leave(result: SharedResult): boolean
}
