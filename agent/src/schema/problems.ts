// A problem in a user's configuration: where it is, what was expected and found, and what to do.

export interface Problem {
  readonly severity: 'error' | 'warning'
  /** Path of the option from the root of the configuration, such as `sinks.out.batch.max_bytes`. */
  readonly path: string
  readonly message: string
  /** Details below the message: the found value, known values, a suggestion. */
  readonly help?: string | undefined
  readonly file?: string | undefined
  /** Line and column in the file, from 1. */
  readonly line?: number | undefined
  readonly column?: number | undefined
  /** For information only, nothing to fix: does not count where warnings are denied. */
  readonly informational?: boolean | undefined
  /** A rendered diagnostic, for programs. */
  readonly rendered?: string | undefined
  /** The first reason why a program does not compile or may not run. */
  readonly diagnostic?: ProgramDiagnostic | undefined
  /** Set where callers treat a problem in their own way: they decide by it, never by the message. */
  readonly code?: 'NO_CONSUMERS' | undefined
}

/** Why a program was refused: the code as users see it, such as `E103`, and the place in the program, from 1. */
export interface ProgramDiagnostic {
  readonly code: string
  readonly message: string
  readonly position?: { readonly line: number; readonly column: number } | undefined
  /** Its own part of the rendering, where there are others. */
  readonly rendered?: string
  /** Further reasons. */
  readonly others?: readonly ProgramDiagnostic[]
}

/** The nearest of the known words, if it is near enough to be what was meant. */
export function closest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  const maxEdits = Math.max(2, Math.floor(word.length / 3))
  let bestDistance = maxEdits + 1
  for (const candidate of known) {
    // Words that differ in half of their letters are different words.
    const ofShort = Math.max(1, Math.ceil(Math.min(word.length, candidate.length) / 2) - 1)
    const limit = Math.min(bestDistance, ofShort + 1)
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), limit)
    if (distance < limit) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) >= limit) return limit
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1] ? 0 : 1
      current[column] = Math.min(
        (previous[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (previous[column - 1] as number) + same,
      )
    }
    previous = current
  }
  return previous[right.length] as number
}
