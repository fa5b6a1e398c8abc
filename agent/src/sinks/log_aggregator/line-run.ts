// Lines that one call of the kernel turns into entries. They are written stream by stream, so that the bytes of a stream are contiguous
// and can be copied together into the final body.

import type { EntryRun } from '../../bytes/byte-target.ts'
import type { Stream } from './streams.ts'

/** Maximum number of entries per call. */
export const maxRun = 512

interface Columns {
  readonly lines: Int32Array
  readonly ms: Float64Array
  readonly ns: Int32Array
  /** The indices of the events in their batch. */
  readonly places: Int32Array
}

const columns = (): Columns => ({
  lines: new Int32Array(maxRun),
  ms: new Float64Array(maxRun),
  ns: new Int32Array(maxRun),
  places: new Int32Array(maxRun),
})

/** Number of the last run; streams remember it. */
let lastRun = 0

export class LineRun implements EntryRun {
  count = 0
  /** Fields removed from the lines. */
  hidden: readonly string[] = []
  /** The streams of the entries, in the order of their first entries. */
  readonly streams: Stream[] = []
  #now = columns()
  #other = columns()
  /** For each entry, the index of its stream, before the entries are sorted. */
  readonly #streamOf = new Int32Array(maxRun)
  /** For each stream, the number of its entries, and the index after the last of them. */
  readonly #counts = new Int32Array(maxRun)
  readonly #ends = new Int32Array(maxRun)
  #number = ++lastRun

  get isFull(): boolean {
    return this.count === maxRun
  }

  get lines(): Int32Array {
    return this.#now.lines
  }

  get ms(): Float64Array {
    return this.#now.ms
  }

  get ns(): Int32Array {
    return this.#now.ns
  }

  placeOf(index: number): number {
    return this.#now.places[index] as number
  }

  add(place: number, line: number, ms: number, ns: number, stream: Stream): void {
    const now = this.#now
    const index = this.count++
    now.lines[index] = line
    now.ms[index] = ms
    now.ns[index] = ns
    now.places[index] = place
    if (stream.run !== this.#number) {
      stream.run = this.#number
      stream.place = this.streams.push(stream) - 1
      this.#counts[stream.place] = 0
    }
    this.#streamOf[index] = stream.place
    this.#counts[stream.place] = (this.#counts[stream.place] as number) + 1
  }

  /**
   * Groups the entries by stream: streams in the order of their first entry, and the entries of a stream in the order of their
   * events.
   */
  sort(): void {
    const { count, streams } = this
    const streamOf = this.#streamOf
    const next = this.#ends
    let first = 0
    for (let stream = 0; stream < streams.length; stream++) {
      next[stream] = first
      first += this.#counts[stream] as number
    }
    if (streams.length === 1) {
      next[0] = count
      return
    }
    const from = this.#now
    const into = this.#other
    for (let index = 0; index < count; index++) {
      const stream = streamOf[index] as number
      const at = next[stream] as number
      next[stream] = at + 1
      into.lines[at] = from.lines[index] as number
      into.ms[at] = from.ms[index] as number
      into.ns[at] = from.ns[index] as number
      into.places[at] = from.places[index] as number
    }
    this.#now = into
    this.#other = from
  }

  /** The index of the stream of a sorted entry. */
  streamAt(index: number): number {
    let stream = 0
    while ((this.#ends[stream] as number) <= index) stream++
    return stream
  }

  /** The index after the last sorted entry of a stream. */
  endOf(stream: number): number {
    return this.#ends[stream] as number
  }

  /** Begins with other entries. */
  clear(): void {
    this.count = 0
    this.streams.length = 0
    this.#number = ++lastRun
  }
}
