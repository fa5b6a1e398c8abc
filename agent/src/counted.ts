// A count with its noun, in the number that it asks for: no text says "1 Pipeline(s)".

/** `1 event`, `2 events`; with another plural where it is no `s`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}

/** `1 of 1 node fails`, `1 of 3 nodes fails`, `2 of 3 nodes fail`: the noun follows the total and the verb the count. */
export function countedOf(count: number, total: number, noun: string, verb: string, pluralVerb: string): string {
  return `${count} of ${counted(total, noun)} ${count === 1 || total === 1 ? verb : pluralVerb}`
}
