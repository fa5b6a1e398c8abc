// Joins several texts into one key for grouping events. The length precedes each text, so different texts always result in different
// keys, whatever characters the events contain.

/** Represents an undefined text. */
const absent = '-'

export function joinedKey(texts: readonly (string | undefined)[]): string {
  let key = ''
  for (let index = 0; index < texts.length; index++) key += keyPart(texts[index])
  return key
}

/** A part of a joined key. */
export function keyPart(text: string | undefined): string {
  return text === undefined ? absent : `${text.length}:${text}`
}

/** Splits a joined key into its texts. */
export function splitKey(key: string): (string | undefined)[] {
  const texts: (string | undefined)[] = []
  for (let at = 0; at < key.length; ) {
    if (key[at] === absent) {
      texts.push(undefined)
      at++
      continue
    }
    const colon = key.indexOf(':', at)
    const from = colon + 1
    at = from + Number(key.slice(at, colon))
    texts.push(key.slice(from, at))
  }
  return texts
}
