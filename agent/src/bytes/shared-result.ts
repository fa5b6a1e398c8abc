// Results that readers of the same lines share. The chunk of the lines has the place, and the reader that comes first leaves its result there.

/** The result that one reader of lines leaves for the others. */
export interface SharedResult {
  readonly bytes: number
  /** Gives its memory back. */
  release(): void
}

/** Exists as long as the lines do. */
export interface ResultPlace {
  readonly result: SharedResult | undefined
  /** Whether others will read the lines, and none has left a result. */
  readonly isWanted: boolean
  /** False if there is no room for it; the caller keeps it then. */
  leave(result: SharedResult): boolean
}
