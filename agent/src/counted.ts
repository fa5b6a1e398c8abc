// A count with its noun, in the number that it asks for: no text says "1 Pipeline(s)".

/** `1 event`, `2 events`; with another plural where it is no `s`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}
