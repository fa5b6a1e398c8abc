// Lines that one call of the kernel turns into entries. They are written stream by stream, so that the bytes of a stream are contiguous
// and can be copied together into the final body.

import type { EntryRun } from '../../bytes/byte-target.ts'
import type { Stream } from './streams.ts'

/** Maximum number of entries per call. */
const maxRun = 256

interface Columns {
  readonly lines: Int32Array
  readonly ms: Float64Array
  readonly ns: Int32Array
  /** The indices of the events in their batch. */
  readonly places: Int32Array
  readonly streams: Stream[]
}

const columns = (): Columns => ({
  lines: new Int32Array(maxRun),
  ms: new Float64Array(maxRun),
  ns: new Int32Array(maxRun),
  places: new Int32Array(maxRun),
  streams: [],
})

export class LineRun implements EntryRun {
  count = 0
  /** Fields removed from the lines. */
  hidden: readonly string[] = []
  #now = columns()
  #other = columns()
  readonly #streamOf = new Int32Array(maxRun)
  readonly #next = new Int32Array(maxRun + 1)
  #sorts = 0

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

  streamOf(index: number): Stream {
    return this.#now.streams[index] as Stream
  }

  add(place: number, line: number, ms: number, ns: number, stream: Stream): void {
    const now = this.#now
    const index = this.count++
    now.lines[index] = line
    now.ms[index] = ms
    now.ns[index] = ns
    now.places[index] = place
    now.streams[index] = stream
  }

  /**
   * Groups the entries by stream: streams in the order of their first entry, and the entries of a stream in the order of their
   * events.
   */
  sort(): void {
    const { count } = this
    const from = this.#now
    const into = this.#other
    const streamOf = this.#streamOf
    const next = this.#next
    const sort = ++this.#sorts
    let streams = 0
    next[0] = 0
    for (let index = 0; index < count; index++) {
      const stream = from.streams[index] as Stream
      if (stream.sort !== sort) {
        stream.sort = sort
        stream.place = streams++
        next[streams] = 0
      }
      const place = stream.place
      streamOf[index] = place
      next[place + 1] = (next[place + 1] as number) + 1
    }
    if (streams < 2) return
    for (let place = 1; place < streams; place++) next[place] = (next[place] as number) + (next[place - 1] as number)
    for (let index = 0; index < count; index++) {
      const place = streamOf[index] as number
      const at = next[place] as number
      next[place] = at + 1
      into.lines[at] = from.lines[index] as number
      into.ms[at] = from.ms[index] as number
      into.ns[at] = from.ns[index] as number
      into.places[at] = from.places[index] as number
      into.streams[at] = from.streams[index] as Stream
    }
    this.#now = into
    this.#other = from
  }
}
