// The write request of absolute metrics: `WriteRequest{timeseries=1, metadata=3}`. Labels are sorted by name; a label that the
// metric type needs (`le`, `quantile`, `__name__`) replaces a tag of that name.

import type { Body } from '../../event/body.ts'
import { type MetricEvent, type MetricValue, singleTagValue } from '../../event/metric.ts'
import { compareKeys } from '../../event/value.ts'
import { floatText } from '../../formats/json.ts'
import { ProtobufWriter } from '../../formats/protobuf.ts'
import { bucketsOf, statisticsOf } from '../../metrics/statistics.ts'

export interface SeriesForms {
  /** Namespace of metrics that have none. */
  readonly namespace: string | undefined
  /** Ascending bucket boundaries for distributions. */
  readonly limits: readonly number[]
  readonly quantiles: readonly number[]
}

interface Series {
  readonly labels: readonly (readonly [string, string])[]
  /** Values by their time in milliseconds. */
  readonly samples: Map<number, number>
}

interface Family {
  readonly type: number
  readonly help: string
}

const counter = 1
const gauge = 2
const histogram = 3
const summary = 5

/** Number of series written for a value, including its family metadata. */
export function seriesOf(value: MetricValue, forms: SeriesForms): number {
  switch (value.type) {
    case 'histogram':
      return value.buckets.length + 4
    case 'summary':
      return value.quantiles.length + 3
    case 'distribution':
      return value.statistic === 'histogram' ? forms.limits.length + 4 : forms.quantiles.length + 3
    default:
      return 2
  }
}

/** Writes a whole request for events in order: for the same series and time, the last value wins. */
export function writeSeries(events: readonly MetricEvent[], body: Body, forms: SeriesForms): void {
  const now = Date.now()
  const families = new Map<string, Family>()
  const all = new Map<string, Series>()
  for (const event of events) {
    const namespace = event.namespace ?? forms.namespace
    const name = namespace === undefined ? event.name : `${namespace}_${event.name}`
    const tags = tagsOf(event)
    const time = event.timestamp?.ms ?? now
    const add = (suffix: string, value: number, label?: string, text = '') => {
      const labels = labelsOf(tags, name + suffix, label, text)
      const key = JSON.stringify(labels)
      let series = all.get(key)
      if (series === undefined) {
        series = { labels, samples: new Map() }
        all.set(key, series)
      }
      series.samples.set(time, value)
    }
    const type = addEvent(event, forms, add)
    if (!families.has(name)) families.set(name, { type, help: event.name })
  }

  const writer = new ProtobufWriter(body)
  for (const { labels, samples } of all.values()) {
    const start = writer.begin(1)
    for (const [name, value] of labels) {
      const label = writer.begin(1)
      text(writer, 1, name)
      text(writer, 2, value)
      writer.end(label)
    }
    for (const [time, value] of samples.size === 1 ? samples : [...samples].sort(([left], [right]) => left - right)) {
      const sample = writer.begin(2)
      if (value !== 0) writer.double(1, value)
      if (time !== 0) writer.integer(2, time)
      writer.end(sample)
    }
    writer.end(start)
  }
  for (const [name, { type, help }] of families) {
    const start = writer.begin(3)
    writer.integer(1, type)
    text(writer, 2, name)
    text(writer, 4, help)
    writer.end(start)
  }
}

/** A field with its default value is omitted. */
function text(writer: ProtobufWriter, field: number, value: string): void {
  if (value !== '') writer.text(field, value)
}

type Add = (suffix: string, value: number, label?: string, text?: string) => void

/** Adds the series of an event; returns the type of its metric family. */
function addEvent({ value }: MetricEvent, forms: SeriesForms, add: Add): number {
  switch (value.type) {
    case 'counter':
      add('', value.value)
      return counter
    case 'gauge':
      add('', value.value)
      return gauge
    case 'set':
      add('', new Set(value.values).size)
      return gauge
    case 'histogram':
      addBuckets(value, add)
      return histogram
    case 'summary':
      for (const { quantile, value: at } of value.quantiles) add('', at, 'quantile', floatText(quantile))
      add('_sum', value.sum)
      add('_count', value.count)
      return summary
    case 'distribution': {
      if (value.statistic === 'histogram') {
        addBuckets(bucketsOf(value.samples, forms.limits), add)
        return histogram
      }
      const found = statisticsOf(value.samples, forms.quantiles)
      for (const { quantile, value: at } of found?.quantiles ?? []) add('', at, 'quantile', floatText(quantile))
      add('_sum', found?.sum ?? 0)
      add('_count', found?.count ?? 0)
      if (found === undefined) return summary
      add('_min', found.min)
      add('_max', found.max)
      add('_avg', found.avg)
      return summary
    }
  }
}

function addBuckets(
  { buckets, count, sum }: { buckets: readonly { upperLimit: number; count: number }[]; count: number; sum: number },
  add: Add,
): void {
  let below = 0
  for (const bucket of buckets) {
    below += bucket.count
    if (Number.isFinite(bucket.upperLimit)) add('_bucket', below, 'le', floatText(bucket.upperLimit))
  }
  add('_bucket', count, 'le', '+Inf')
  add('_sum', sum)
  add('_count', count)
}

/** Tags that have a value, by name. */
function tagsOf(event: MetricEvent): [string, string][] {
  const found: [string, string][] = []
  if (event.tags === undefined) return found
  for (const [name, tag] of event.tags) {
    const value = singleTagValue(tag)
    if (value !== undefined) found.push([name, value])
  }
  return found
}

function labelsOf(
  tags: readonly (readonly [string, string])[],
  name: string,
  label: string | undefined,
  value: string,
): (readonly [string, string])[] {
  const labels: (readonly [string, string])[] = [['__name__', name]]
  for (const tag of tags) if (tag[0] !== '__name__' && tag[0] !== label) labels.push(tag)
  if (label !== undefined) labels.push([label, value])
  return labels.sort(([left], [right]) => compareKeys(left, right))
}
