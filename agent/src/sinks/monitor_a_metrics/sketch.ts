// Sketches of samples, bit for bit like those of monitoring service A's agents: logarithmic bins with a relative error of
// 1/128, counted in 16 bits each, at most 4096 of them.

import type { MetricValue } from '../../event/metric.ts'

const gamma = 1 + 2 / 128
const logGamma = Math.log1p(2 / 128)
const bias = 1338
const smallest = gamma ** (1 - bias)
const maxBins = 4096
const widestBin = 65_535
const infiniteKey = 32_767

export interface Bin {
  readonly key: number
  readonly count: number
}

/** The bin key of a value. */
export function keyOf(value: number): number {
  if (value < 0) return -keyOf(-value)
  if (value < smallest) return 0
  return Math.min(Math.max(halfToEven(Math.log(value) / logGamma) + bias, 1), infiniteKey)
}

function halfToEven(value: number): number {
  const rounded = Math.round(value)
  return rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded
}

function lowerBound(key: number): number {
  if (key < 0) return -lowerBound(-key)
  if (key === 0) return 0
  return key === infiniteKey ? Number.POSITIVE_INFINITY : gamma ** (key - bias)
}

export class Sketch {
  min = 0
  max = 0
  sum = 0
  count = 0
  readonly #counts = new Map<number, number>()

  get avg(): number {
    return this.count === 0 ? 0 : this.sum / this.count
  }

  /** Adds a value that occurred `count` times. */
  insert(value: number, count: number): void {
    if (count === 0) return
    this.#measure(value, count)
    this.#add(keyOf(value), count)
  }

  /** Adds `count` values spread evenly between two bounds. */
  interpolate(lower: number, upper: number, count: number): void {
    const last = keyOf(upper)
    let key = keyOf(lower)
    let bound = lowerBound(key)
    let remaining = count
    let carried = 0
    for (let next = key + 1; next <= last && remaining > 0; next++) {
      const nextBound = lowerBound(next)
      const share = ((nextBound - bound) / (upper - lower)) * count
      if (share > 1) carried += share - Math.trunc(share)
      let whole = Math.trunc(share)
      if (carried > 1) {
        whole++
        carried--
      }
      if (whole === 0) continue
      const taken = Math.min(whole, remaining)
      this.#measure(bound, taken)
      this.#add(key, taken)
      remaining -= taken
      key = next
      bound = nextBound
    }
    if (remaining > 0) {
      this.#measure(lowerBound(key), remaining)
      this.#add(key, remaining)
    }
  }

  /** The bins, sorted by key. If several bins have the same key, the last ones are full. */
  bins(): Bin[] {
    const bins: Bin[] = []
    for (const key of [...this.#counts.keys()].sort((left, right) => left - right)) {
      pushBins(bins, key, this.#counts.get(key) as number)
    }
    return trimmed(bins)
  }

  #add(key: number, count: number): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + count)
  }

  #measure(value: number, count: number): void {
    if (this.count === 0 || value < this.min) this.min = value
    if (this.count === 0 || value > this.max) this.max = value
    this.count += count
    this.sum += value * count
  }
}

function pushBins(bins: Bin[], key: number, count: number): void {
  const rest = count % widestBin
  if (rest !== 0) bins.push({ key, count: rest })
  for (let full = Math.floor(count / widestBin); full > 0; full--) bins.push({ key, count: widestBin })
}

/** Adds the counts of the lowest excess bins to the first remaining one. */
function trimmed(bins: Bin[]): Bin[] {
  const surplus = bins.length - maxBins
  if (surplus <= 0) return bins
  const overflow: Bin[] = []
  let missing = 0
  for (const { key, count } of bins.slice(0, surplus)) {
    missing += count
    if (missing > widestBin) {
      overflow.push({ key, count: widestBin })
      missing -= widestBin
    }
  }
  const first = bins[surplus] as Bin
  const sum = first.count + missing
  const kept = { key: first.key, count: Math.min(sum, widestBin) }
  if (sum > widestBin) pushBins(overflow, first.key, sum - widestBin)
  return [...overflow, kept, ...bins.slice(surplus + 1)]
}

/** The sketch of a distribution or a histogram; empty for other metrics. */
export function sketchOf(value: MetricValue): Sketch {
  const sketch = new Sketch()
  if (value.type === 'distribution') {
    for (const sample of value.samples) sketch.insert(sample.value, sample.rate)
  } else if (value.type === 'histogram') {
    let below = Number.NEGATIVE_INFINITY
    for (const { upperLimit, count } of value.buckets.toSorted((left, right) => left.upperLimit - right.upperLimit)) {
      let lower = below
      let upper = upperLimit
      if (upper === Number.POSITIVE_INFINITY) {
        // Without any bounds, the mean is the only known fact about the values.
        upper = lower === Number.NEGATIVE_INFINITY ? value.sum / Math.max(value.count, 1) : lower
      }
      if (lower === Number.NEGATIVE_INFINITY) lower = upper
      sketch.interpolate(lower, upper, count)
      below = upperLimit
    }
  }
  return sketch
}
