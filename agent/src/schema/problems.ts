// A problem in a user's configuration: its place, the expected and the found value, and advice.

export interface Problem {
  readonly severity: 'error' | 'warning'
  /** Path of the option from the root of the configuration, such as `sinks.out.batch.max_bytes`. */
  readonly path: string
  readonly message: string
  /** Details below the message: the found value, known values, a suggestion. */
  readonly help?: string | undefined
  readonly file?: string | undefined
  /** Line and column in the file, starting at 1. */
  readonly line?: number | undefined
  readonly column?: number | undefined
  /** Whether the problem is only information. It does not count if warnings are denied. */
  readonly informational?: boolean | undefined
  /** The rendered diagnostic of a program. */
  readonly rendered?: string | undefined
  /** The first reason why a program does not compile or is not permitted to run. */
  readonly diagnostic?: ProgramDiagnostic | undefined
  /** Identifies a problem that callers treat specially, so that they need not inspect the message. */
  readonly code?: 'NO_CONSUMERS' | undefined
}

/** The reason why a program was rejected: the code that users see, such as `E103`, and the place in the program, starting at 1. */
export interface ProgramDiagnostic {
  readonly code: string
  readonly message: string
  readonly position?: { readonly line: number; readonly column: number } | undefined
  /** Its own part of the rendered text, if there are other diagnostics. */
  readonly rendered?: string
  /** Additional reasons. */
  readonly others?: readonly ProgramDiagnostic[]
}

/** The most similar known word, if it is similar enough to be a plausible correction. */
export function closest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  const maxEdits = Math.max(2, Math.floor(word.length / 3))
  let bestDistance = maxEdits + 1
  for (const candidate of known) {
    // Words that differ in half of their letters are not plausible corrections.
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

const partsOf = (name: string) => name.toLowerCase().split(/[^a-z0-9]+/)

/** The known names, the most similar ones first. A part in common, such as `timeout` in `request.timeout`, counts as three letters. */
export function byCloseness(name: string, known: readonly string[]): readonly string[] {
  const own = partsOf(name)
  const distance = (other: string) => {
    const shared = partsOf(other).filter((part) => own.includes(part)).length
    return editDistance(name.toLowerCase(), other.toLowerCase(), Number.POSITIVE_INFINITY) - 3 * shared
  }
  const scored = known.map((other) => ({ other, score: distance(other) }))
  return scored.toSorted((left, right) => left.score - right.score).map(({ other }) => other)
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
