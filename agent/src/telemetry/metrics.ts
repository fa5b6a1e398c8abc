// The store of the agent's own metrics. A component looks up a series once and then adds to a number. The store is read only on request.
// The values of some labels come from data, such as names of files. Beyond a limit, further values share the series with the value
// `other`, so that sums stay correct: first, the store adds long idle series to it, then new values.
//
// The store of prom-client has no limit on the number of series.

import { type MetricDefinition, type MetricType, metricTable } from './metric-table.ts'

export type Labels = Readonly<Record<string, string>>

/** Labels with values from data. */
const dataLabels: ReadonlySet<string> = new Set([
  'container_name',
  'endpoint',
  'file',
  'namespace',
  'peer_addr',
  'peer_path',
  'pod_name',
  'pod_namespace',
  'uri',
])
const otherValue = 'other'

/** Limits for series with values from data: the number for one metric, and the estimated bytes of all series. */
const maxSeries = 10_000
const maxSeriesBytes = 32 << 20
/** Bytes of a series without the characters of its labels. */
const seriesBytes = 500
/** Minimum interval between two searches for idle series. A series that did not change between them is idle. */
const idleSearchMs = 600_000

/** Upper bounds of the agent's own histograms: 0.015625 · 2^n. */
export const histogramBounds: readonly number[] = Array.from({ length: 20 }, (_, index) => 0.015625 * 2 ** index)

/** A counter or gauge with its labels: a number that its component adds to. */
export class Series {
  readonly labels: Labels
  #value = 0
  readonly #read: (() => number) | undefined
  readonly #family: Family
  /** False if the series was removed because it was idle. The next change restores it. */
  #listed = true
  /** Its mark at the last search for idle series. */
  lastMark = Number.NaN

  constructor(family: Family, labels: Labels, read?: () => number) {
    this.#family = family
    this.labels = labels
    this.#read = read
  }

  /** Whether the value is computed when read. Such a series is never removed, because nothing would restore it. */
  get computed(): boolean {
    return this.#read !== undefined
  }

  get value(): number {
    return this.#read === undefined ? this.#value : this.#read()
  }

  add(by: number): void {
    this.#value += by
    if (!this.#listed) this.#relist()
  }

  set(value: number): void {
    this.#value = value
    if (!this.#listed) this.#relist()
  }

  #relist(): void {
    this.#listed = true
    this.#family.list(this)
  }

  /** Moves its count to another series. */
  moveTo(other: Series): void {
    other.add(this.#value)
    this.#value = 0
  }

  /** A value that changes whenever the series does. */
  get mark(): number {
    return this.value
  }

  unlisted(): void {
    this.#listed = false
  }
}

/** A histogram with its labels. */
export class HistogramSeries {
  readonly labels: Labels
  /** The number of observations up to each bound and above the previous one; the last bound is infinite. */
  readonly buckets = new Float64Array(histogramBounds.length + 1)
  sum = 0
  count = 0
  readonly #family: Family
  #listed = true
  /** Its mark at the last search for idle series. */
  lastMark = Number.NaN

  constructor(family: Family, labels: Labels) {
    this.#family = family
    this.labels = labels
  }

  observe(value: number): void {
    let index = 0
    while (index < histogramBounds.length && value > (histogramBounds[index] as number)) index++
    this.buckets[index] = (this.buckets[index] as number) + 1
    this.sum += value
    this.count++
    if (!this.#listed) {
      this.#listed = true
      this.#family.list(this)
    }
  }

  get mark(): number {
    return this.count
  }

  /** Moves its observations to another series. */
  moveTo(other: HistogramSeries): void {
    for (let index = 0; index < this.buckets.length; index++) {
      other.buckets[index] = (other.buckets[index] as number) + (this.buckets[index] as number)
    }
    other.sum += this.sum
    other.count += this.count
    this.buckets.fill(0)
    this.sum = 0
    this.count = 0
  }

  unlisted(): void {
    this.#listed = false
  }
}

type AnySeries = Series | HistogramSeries

/** All series of one metric. */
class Family {
  readonly name: string
  readonly definition: MetricDefinition
  readonly series = new Map<string, AnySeries>()
  /** The mark of each series at the last expiry check. */
  readonly seen = new Map<string, { mark: number; since: number }>()
  /** Estimated bytes of all families. */
  readonly #total: { bytes: number }
  searchedForIdle = Number.NEGATIVE_INFINITY

  constructor(name: string, definition: MetricDefinition, total: { bytes: number }) {
    this.name = name
    this.definition = definition
    this.#total = total
  }

  list(series: AnySeries, key = seriesKey(series.labels)): void {
    if (!this.series.has(key)) this.#total.bytes += seriesBytes + 2 * key.length
    this.series.set(key, series)
    this.seen.delete(key)
  }

  unlist(key: string, series: AnySeries): void {
    this.series.delete(key)
    this.seen.delete(key)
    this.#total.bytes -= seriesBytes + 2 * key.length
    series.unlisted()
  }

  get full(): boolean {
    return this.series.size >= maxSeries || this.#total.bytes >= maxSeriesBytes
  }
}

/** Replaces the values of labels from data by `other`; undefined if there are none. */
function withoutData(labels: Labels): Labels | undefined {
  let limited: Record<string, string> | undefined
  for (const name in labels) {
    if (!dataLabels.has(name) || labels[name] === otherValue) continue
    limited ??= { ...labels }
    limited[name] = otherValue
  }
  return limited
}

function seriesKey(labels: Labels): string {
  const names = Object.keys(labels).sort()
  let key = ''
  // Includes the lengths, because values may contain any characters.
  for (const name of names) {
    const value = String(labels[name])
    key += `${name.length}:${name}${value.length}:${value}`
  }
  return key
}

/** The value of one series. */
export type Sample =
  | { readonly labels: Labels; readonly value: number }
  | {
      readonly labels: Labels
      readonly histogram: {
        readonly buckets: readonly { readonly upperLimit: number; readonly count: number }[]
        readonly sum: number
        readonly count: number
      }
    }

export interface MetricSnapshot {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  readonly samples: readonly Sample[]
}

/** The metrics of one running agent. Counters continue through reloads. */
export class Metrics {
  readonly #families = new Map<string, Family>()
  readonly #total = { bytes: 0 }
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Estimated bytes of all series. */
  get bytes(): number {
    return this.#total.bytes
  }

  #family(name: string, type: MetricType): Family {
    let family = this.#families.get(name)
    if (family === undefined) {
      const definition = (metricTable as Record<string, MetricDefinition>)[name]
      if (definition === undefined) throw new TypeError(`The metric ${name} is not in the table of metrics.`)
      if (definition.type !== type) throw new TypeError(`The metric ${name} is a ${definition.type}, not a ${type}.`)
      family = new Family(name, definition, this.#total)
      this.#families.set(name, family)
    }
    return family
  }

  #series(name: string, type: 'counter' | 'gauge', labels: Labels, read?: () => number): Series {
    const family = this.#family(name, type)
    const key = seriesKey(labels)
    const known = family.series.get(key)
    if (known !== undefined && read === undefined) return known as Series
    if (read === undefined && family.full) {
      const limited = this.#limited(family, labels)
      if (limited !== undefined) return this.#series(name, type, limited)
    }
    const series = new Series(family, labels, read)
    family.list(series, key)
    return series
  }

  /** Labels with `other`, if the family has no space for a new series; undefined if it has space, or no label contains data. */
  #limited(family: Family, labels: Labels): Labels | undefined {
    const limited = withoutData(labels)
    if (limited === undefined) return undefined
    this.#makeRoom(family)
    if (!family.full) return undefined
    this.counter('metric_series_limited_total', { metric: family.name }).add(1)
    return limited
  }

  /** Adds idle series to those of `other`. */
  #makeRoom(family: Family): void {
    const now = this.#now()
    if (now - family.searchedForIdle < idleSearchMs) return
    family.searchedForIdle = now
    for (const [key, series] of family.series) {
      const { mark } = series
      if (mark !== series.lastMark) {
        series.lastMark = mark
        continue
      }
      const limited = withoutData(series.labels)
      if (limited === undefined || (series instanceof Series && series.computed)) continue
      family.unlist(key, series)
      if (series instanceof HistogramSeries) series.moveTo(this.histogram(family.name, limited))
      else if (family.definition.type === 'counter') series.moveTo(this.counter(family.name, limited))
    }
  }

  counter(name: string, labels: Labels = {}): Series {
    return this.#series(name, 'counter', labels)
  }

  gauge(name: string, labels: Labels = {}): Series {
    return this.#series(name, 'gauge', labels)
  }

  /** A gauge or counter that is computed when read. Replaces one with the same labels. */
  computed(name: string, labels: Labels, read: () => number): void {
    const type = (metricTable as Record<string, MetricDefinition>)[name]?.type
    this.#series(name, type === 'counter' ? 'counter' : 'gauge', labels, read)
  }

  histogram(name: string, labels: Labels = {}): HistogramSeries {
    const family = this.#family(name, 'histogram')
    const key = seriesKey(labels)
    const known = family.series.get(key)
    if (known !== undefined) return known as HistogramSeries
    if (family.full) {
      const limited = this.#limited(family, labels)
      if (limited !== undefined) return this.histogram(name, limited)
    }
    const series = new HistogramSeries(family, labels)
    family.list(series, key)
    return series
  }

  /** The sum of all series of a metric that have these labels. */
  sum(name: string, labels: Labels = {}): number {
    const wanted = Object.entries(labels)
    let sum = 0
    for (const series of this.#families.get(name)?.series.values() ?? []) {
      if (series instanceof Series && wanted.every(([label, value]) => series.labels[label] === value)) {
        sum += series.value
      }
    }
    return sum
  }

  /** The sums of several counters for every component that has at least one of them. */
  byComponent<const N extends string>(
    names: readonly N[],
    counts: (labels: Labels) => boolean = () => true,
  ): Map<string, Record<N, number>> {
    const sums = new Map<string, Record<N, number>>()
    for (const name of names) {
      for (const series of this.#families.get(name)?.series.values() ?? []) {
        const id = series.labels['component_id']
        if (id === undefined || !(series instanceof Series) || !counts(series.labels)) continue
        let sum = sums.get(id)
        if (sum === undefined) {
          sum = Object.fromEntries(names.map((each) => [each, 0])) as Record<N, number>
          sums.set(id, sum)
        }
        sum[name] += series.value
      }
    }
    return sums
  }

  /** All current metrics, including those with old names. */
  snapshot(): MetricSnapshot[] {
    const snapshots: MetricSnapshot[] = []
    for (const [name, definition] of Object.entries(metricTable) as [string, MetricDefinition][]) {
      const families = this.#origins(name, definition)
      const samples: Sample[] = []
      for (const family of families) for (const series of family.series.values()) samples.push(sample(series))
      if (samples.length > 0) snapshots.push({ name, type: definition.type, help: definition.help, samples })
    }
    return snapshots
  }

  #origins(name: string, definition: MetricDefinition): Family[] {
    const names =
      name === 'processed_bytes_total'
        ? ['component_received_bytes_total', 'component_sent_bytes_total']
        : [definition.twinOf ?? name]
    return names.map((origin) => this.#families.get(origin)).filter((family) => family !== undefined)
  }

  /**
   * Removes series that have not changed for this time. Call it regularly. If a removed series changes again, it continues from its old
   * value.
   */
  expire(now: number, idleMs: number): void {
    for (const family of this.#families.values()) {
      if (!family.definition.component) continue
      for (const [key, series] of family.series) {
        if (series instanceof Series && series.computed) continue
        const mark = series.mark
        const seen = family.seen.get(key)
        if (seen === undefined || seen.mark !== mark) {
          family.seen.set(key, { mark, since: now })
        } else if (now - seen.since >= idleMs) {
          family.unlist(key, series)
        }
      }
    }
  }

  /** Removes the series of a component that no longer exists. */
  forget(componentId: string): void {
    for (const family of this.#families.values()) {
      for (const [key, series] of family.series) {
        if (series.labels['component_id'] === componentId) family.unlist(key, series)
      }
    }
  }
}

function sample(series: AnySeries): Sample {
  if (series instanceof Series) return { labels: series.labels, value: series.value }
  const buckets = histogramBounds.map((upperLimit, index) => ({ upperLimit, count: series.buckets[index] as number }))
  buckets.push({ upperLimit: Number.POSITIVE_INFINITY, count: series.buckets[histogramBounds.length] as number })
  return { labels: series.labels, histogram: { buckets, sum: series.sum, count: series.count } }
}
