// Writes a count with its noun in singular or plural, so that no text contains "1 Pipeline(s)".

/** `1 event`, `2 events`. Pass the plural if it does not just end in `s`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}

/**
 * `1 of 1 node fails`, `1 of 3 nodes fails`, `2 of 3 nodes fail`: the noun agrees with the total, the verb with the
 * count.
 */
export function countedOf(count: number, total: number, noun: string, verb: string, pluralVerb: string): string {
  return `${count} of ${counted(total, noun)} ${count === 1 || total === 1 ? verb : pluralVerb}`
}
