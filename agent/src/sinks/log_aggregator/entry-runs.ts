// Runs of consecutive entries of one stream, which are copied together: `[first, last, stream]`, three numbers for each run.

/** The runs of a request, in the order in which they are written. */
export class EntryRuns {
  #numbers = new Uint32Array(3 * 64)
  count = 0

  get numbers(): Uint32Array {
    return this.#numbers.subarray(0, 3 * this.count)
  }

  /** Adds entries `[first, last]`. */
  add(first: number, last: number, stream: number): void {
    const before = 3 * this.count - 3
    let numbers = this.#numbers
    if (before >= 0 && numbers[before + 2] === stream && numbers[before + 1] === first - 1) {
      numbers[before + 1] = last
      return
    }
    const at = before + 3
    if (at === numbers.length) {
      numbers = new Uint32Array(2 * at)
      numbers.set(this.#numbers)
      this.#numbers = numbers
    }
    numbers[at] = first
    numbers[at + 1] = last
    numbers[at + 2] = stream
    this.count++
  }

  clear(): void {
    this.count = 0
  }

  /** The stream of each entry. */
  streams(count: number): Uint32Array {
    const { numbers } = this
    const streamOf = new Uint32Array(count)
    for (let run = 0; run < numbers.length; run += 3) {
      streamOf.fill(numbers[run + 2] as number, numbers[run] as number, (numbers[run + 1] as number) + 1)
    }
    return streamOf
  }

  /** Stream by stream, and otherwise in this order. */
  byStream(streams: number): Uint32Array {
    const { numbers } = this
    const next = new Uint32Array(streams + 1)
    for (let run = 2; run < numbers.length; run += 3) {
      const after = (numbers[run] as number) + 1
      next[after] = (next[after] as number) + 3
    }
    for (let stream = 1; stream <= streams; stream++) {
      next[stream] = (next[stream] as number) + (next[stream - 1] as number)
    }
    const sorted = new Uint32Array(numbers.length)
    for (let run = 0; run < numbers.length; run += 3) {
      const stream = numbers[run + 2] as number
      const at = next[stream] as number
      next[stream] = at + 3
      sorted[at] = numbers[run] as number
      sorted[at + 1] = numbers[run + 1] as number
      sorted[at + 2] = stream
    }
    return sorted
  }
}

/** The positions of the entries of runs. */
export function positionsIn(runs: Uint32Array, count: number): Uint32Array {
  const order = new Uint32Array(count)
  let place = 0
  for (let run = 0; run < runs.length; run += 3) {
    const last = runs[run + 1] as number
    for (let at = runs[run] as number; at <= last; at++) order[place++] = at
  }
  return order
}

/** For runs in the order in which they are written: each stream, and the number of its entries. */
export function countsIn(runs: Uint32Array): number[] {
  const counts: number[] = []
  for (let run = 0; run < runs.length; run += 3) {
    const count = (runs[run + 1] as number) - (runs[run] as number) + 1
    const stream = runs[run + 2] as number
    const last = counts.length - 2
    if (last >= 0 && counts[last] === stream) counts[last + 1] = (counts[last + 1] as number) + count
    else counts.push(stream, count)
  }
  return counts
}

/** The stream of each entry. */
export function streamsIn(counts: readonly number[]): Uint32Array {
  let total = 0
  for (let pair = 0; pair < counts.length; pair += 2) total += counts[pair + 1] as number
  const streamOf = new Uint32Array(total)
  let first = 0
  for (let pair = 0; pair < counts.length; pair += 2) {
    const end = first + (counts[pair + 1] as number)
    streamOf.fill(counts[pair] as number, first, end)
    first = end
  }
  return streamOf
}

/** Runs of the current body. The array keeps the size of the largest body. */
let reused = new Uint32Array(0)

/** Runs of consecutive positions of one stream. Valid until the next call. */
export function runsOf(positions: ArrayLike<number>, streamOf: Uint32Array): Uint32Array {
  if (reused.length < 3 * positions.length) reused = new Uint32Array(3 * positions.length)
  const runs = reused
  let count = 0
  let at = 0
  while (at < positions.length) {
    const first = positions[at] as number
    const stream = streamOf[first] as number
    let last = first
    at++
    while (at < positions.length && positions[at] === last + 1 && streamOf[last + 1] === stream) {
      last++
      at++
    }
    runs[count] = first
    runs[count + 1] = last
    runs[count + 2] = stream
    count += 3
  }
  return runs.subarray(0, count)
}
