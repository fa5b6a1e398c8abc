// Reads a text as a sequence of tokens, for the parsers of the languages of other agents.

/**
 * The matches of a pattern that follow one another and cover a text.
 * @param pattern sticky, and without empty matches
 * @param refused makes the error for the rest of a text that no match begins
 */
export function* matchesIn(
  text: string,
  pattern: RegExp,
  refused: (rest: string) => Error,
): Generator<RegExpExecArray> {
  let at = 0
  while (at < text.length) {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found === null) throw refused(text.slice(at))
    at = pattern.lastIndex
    yield found
  }
}
