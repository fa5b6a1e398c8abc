// Counts lines that writers number from 0: received, repeated and missing ones.

/** The line numbers of each writer, with the number of times each was received. */
export type Counted = ReadonlyMap<string, { readonly numbers: ReadonlyMap<number, number>; readonly last: number }>

export function countNumbers(lines: Iterable<readonly [writer: string, n: number]>): Counted {
  const counted = new Map<string, { numbers: Map<number, number>; last: number }>()
  for (const [writer, n] of lines) {
    const known = counted.get(writer) ?? { numbers: new Map<number, number>(), last: -1 }
    counted.set(writer, known)
    known.numbers.set(n, (known.numbers.get(n) ?? 0) + 1)
    known.last = Math.max(known.last, n)
  }
  return counted
}

/** Number of repeated lines. */
export function doublesIn(counted: Counted): number {
  let doubles = 0
  for (const { numbers } of counted.values()) for (const times of numbers.values()) doubles += times - 1
  return doubles
}

/** The first missing line of a writer, up to the last one in `written`; undefined if all were received. */
export function missingIn(counted: Counted, written: Counted): string | undefined {
  for (const [writer, { last }] of written) {
    const numbers = counted.get(writer)?.numbers
    for (let n = 0; n <= last; n++) if (!numbers?.has(n)) return `${writer} ${n} of ${last + 1}`
  }
  return undefined
}
