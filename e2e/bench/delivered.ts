// Finds the generator's lines in the output of an agent, and checks for each file that none is missing or repeated. It searches the bytes of
// a body for marks, so it works for all formats that leave text unchanged.

import { lineMark, pieceMark } from './app-lines.ts'

export interface Delivery {
  /** Number of different lines, and of repeated ones. */
  readonly received: number
  readonly doubled: number
  /** Number of lines in pieces that arrived with missing or repeated pieces. */
  readonly damaged: number
  /** Delays between writing and delivery, without the first line of each file. */
  readonly latencyAvgMs: number
  readonly latencyP99Ms: number
  /** The arrival time of each body with such lines, in milliseconds since 1970, and the total number of lines by then. */
  readonly arrivals: readonly Arrival[]
}

export type Arrival = readonly [atMs: number, lines: number]

/** Lines per second between the first body, which only marks the start, and the last relevant one. */
export function arrivalRate(arrivals: readonly Arrival[], counts: (arrival: Arrival) => boolean): number {
  const first = arrivals[0]
  const last = arrivals.findLast(counts)
  if (first === undefined || last === undefined || last[0] <= first[0]) return 0
  return ((last[1] - first[1]) / (last[0] - first[0])) * 1000
}

const line = Buffer.from(lineMark)
const piece = Buffer.from(pieceMark)
/** Upper limit for recorded delays. */
const maxLatencyMs = 120_000

export class Delivered {
  readonly #seen: Uint32Array[] = []
  readonly #latencies = new Uint32Array(maxLatencyMs + 1)
  #latencySum = 0
  #timed = 0
  #received = 0
  #doubled = 0
  #damaged = 0
  readonly #arrivals: Arrival[] = []

  /** For lines written before this time, latency counts from it. */
  originMs = 0

  get received(): number {
    return this.#received
  }

  /** Processes an uncompressed body that arrived at `nowMs`. */
  take(body: Buffer, nowMs: number): void {
    let inPieces: Map<number, number> | undefined
    let timed = 0
    for (let at = body.indexOf(line); at >= 0; at = body.indexOf(line, at + 36)) {
      const file = number(body, at + 6, 3)
      const sequence = number(body, at + 10, 9)
      const pieces = number(body, at + 20, 2)
      if (!this.#first(file, sequence)) {
        this.#doubled++
        continue
      }
      this.#received++
      if (pieces > 0) {
        inPieces ??= new Map()
        inPieces.set(file * 1e9 + sequence, (1 << pieces) - 1)
      }
      if (sequence === 0) continue
      timed++
      const ms = Math.max(0, nowMs - Math.max(this.originMs, number(body, at + 23, 13)))
      this.#latencySum += ms
      const bucket = Math.min(maxLatencyMs, Math.round(ms))
      this.#latencies[bucket] = (this.#latencies[bucket] as number) + 1
    }
    if (timed > 0) {
      this.#timed += timed
      this.#arrivals.push([nowMs, this.#timed])
    }
    if (inPieces !== undefined) this.#checkPieces(body, inPieces)
  }

  /** Checks that this body contains all pieces of a line exactly once. */
  #checkPieces(body: Buffer, missing: Map<number, number>): void {
    for (let at = body.indexOf(piece); at >= 0; at = body.indexOf(piece, at + 22)) {
      const key = number(body, at + 6, 3) * 1e9 + number(body, at + 10, 9)
      const left = missing.get(key)
      if (left === undefined) continue
      const bit = 1 << (number(body, at + 20, 2) - 1)
      missing.set(key, (left & bit) === 0 ? -1 : left ^ bit)
    }
    for (const left of missing.values()) if (left !== 0) this.#damaged++
  }

  #first(file: number, sequence: number): boolean {
    let bits = this.#seen[file] ?? new Uint32Array(1024)
    const word = sequence >>> 5
    if (word >= bits.length) {
      const larger = new Uint32Array(Math.max(word + 1, bits.length * 2))
      larger.set(bits)
      bits = larger
    }
    this.#seen[file] = bits
    const bit = 1 << (sequence & 31)
    const old = bits[word] as number
    bits[word] = old | bit
    return (old & bit) === 0
  }

  delivery(): Delivery {
    let left = Math.ceil(this.#timed * 0.99)
    let p99 = 0
    while (left > 0 && p99 <= maxLatencyMs) left -= this.#latencies[p99++] as number
    return {
      received: this.#received,
      doubled: this.#doubled,
      damaged: this.#damaged,
      latencyAvgMs: this.#timed === 0 ? 0 : this.#latencySum / this.#timed,
      latencyP99Ms: Math.max(0, p99 - 1),
      arrivals: this.#arrivals,
    }
  }
}

/** Text other than digits gives a number that no line has. */
function number(bytes: Buffer, from: number, count: number): number {
  let value = 0
  for (let at = from; at < from + count; at++) value = value * 10 + (bytes[at] as number) - 48
  return value
}
