// The bodies for monitoring service A: series as JSON or protobuf, and sketches. Events are sorted by type, name, time and tags,
// and counters of the same series and second are merged.

import type { Body } from '../../event/body.ts'
import type { MetricEvent } from '../../event/metric.ts'
import { compareKeys } from '../../event/value.ts'
import { ProtobufWriter } from '../../formats/protobuf.ts'
import { mergedEvent } from '../../metrics/aggregate.ts'
import { seriesKey } from '../../metrics/series.ts'
import { sketchOf } from './sketch.ts'

export interface PayloadForms {
  /** Namespace of metrics that have none. */
  readonly namespace: string | undefined
  /** Tag that names the host. */
  readonly hostKey: string
}

/** Product and category by which the service identifies the origin of metrics. */
const originProduct = 14
const originCategory = 11

/** An event with its sort keys. */
interface Entry {
  readonly event: MetricEvent
  readonly name: string
  readonly seconds: number
  readonly tags: string
}

interface Parts {
  host: string | undefined
  device: string | undefined
  sourceTypeName: string | undefined
  readonly resources: { readonly type: string; readonly name: string }[]
  /** As `key:value`, sorted. */
  readonly tags: string[]
}

export function writeSeriesJson(events: readonly MetricEvent[], body: Body, forms: PayloadForms): void {
  body.writeText('{"series":[')
  let separator = ''
  for (const { event, name, seconds } of sorted(events, forms)) {
    const { host, device, sourceTypeName, resources, tags } = partsOf(event, forms.hostKey)
    const { type, value, interval } = pointOf(event)
    // Version 1 of the API has no resources and sends them as tags.
    const all = [...tags, ...resources.map((resource) => `resource.${resource.type}:${resource.name}`)].sort(
      compareKeys,
    )
    body.writeText(
      separator +
        JSON.stringify({
          metric: name,
          type: type === rate ? 'rate' : type === count ? 'count' : 'gauge',
          interval,
          points: [[seconds, value]],
          tags: all,
          host,
          source_type_name: sourceTypeName,
          device,
        }),
    )
    separator = ','
  }
  body.writeText(']}')
}

/** `MetricPayload{series=1}`. */
export function writeSeriesMessage(events: readonly MetricEvent[], body: Body, forms: PayloadForms): void {
  const writer = new ProtobufWriter(body)
  for (const { event, name, seconds } of sorted(events, forms)) {
    const { host, device, sourceTypeName, resources, tags } = partsOf(event, forms.hostKey)
    const { type, value, interval } = pointOf(event)
    const start = writer.begin(1)
    writeResource(writer, 'host', host)
    if (device !== undefined) writeResource(writer, 'device', device)
    for (const resource of resources) writeResource(writer, resource.type, resource.name)
    writer.text(2, name)
    for (const tag of tags) writer.text(3, tag)
    const point = writer.begin(4)
    if (value !== 0) writer.double(1, value)
    if (seconds !== 0) writer.integer(2, seconds)
    writer.end(point)
    writer.integer(5, type)
    if (sourceTypeName !== undefined && sourceTypeName !== '') writer.text(7, sourceTypeName)
    if (interval !== undefined) writer.integer(8, interval)
    writeMetadata(writer, 9)
    writer.end(start)
  }
}

/** `SketchPayload{sketches=1}`. */
export function writeSketches(events: readonly MetricEvent[], body: Body, forms: PayloadForms): void {
  const writer = new ProtobufWriter(body)
  for (const { event, name, seconds } of sorted(events, forms)) {
    const sketch = sketchOf(event.value)
    const { host, device, sourceTypeName, resources, tags } = partsOf(event, forms.hostKey)
    // A sketch has only a host and tags.
    const all = [...tags]
    if (device !== undefined) all.push(`device:${device}`)
    if (sourceTypeName !== undefined) all.push(`source_type_name:${sourceTypeName}`)
    for (const resource of resources) all.push(`resource.${resource.type}:${resource.name}`)
    const start = writer.begin(1)
    writer.text(1, name)
    if (host !== undefined && host !== '') writer.text(2, host)
    for (const tag of all.sort(compareKeys)) writer.text(4, tag)
    const dog = writer.begin(7)
    if (seconds !== 0) writer.integer(1, seconds)
    writer.integer(2, sketch.count)
    if (sketch.min !== 0) writer.double(3, sketch.min)
    if (sketch.max !== 0) writer.double(4, sketch.max)
    if (sketch.avg !== 0) writer.double(5, sketch.avg)
    if (sketch.sum !== 0) writer.double(6, sketch.sum)
    const bins = sketch.bins()
    const keys = writer.begin(7)
    for (const { key } of bins) writer.varint(key < 0 ? -key * 2 - 1 : key * 2)
    writer.end(keys)
    const counts = writer.begin(8)
    for (const bin of bins) writer.varint(bin.count)
    writer.end(counts)
    writer.end(dog)
    writeMetadata(writer, 8)
    writer.end(start)
  }
}

function writeResource(writer: ProtobufWriter, type: string, name: string | undefined): void {
  const start = writer.begin(1)
  writer.text(1, type)
  if (name !== undefined && name !== '') writer.text(2, name)
  writer.end(start)
}

/** `metadata{origin=1{origin_product=4, origin_category=5}}`. */
function writeMetadata(writer: ProtobufWriter, field: number): void {
  const metadata = writer.begin(field)
  const origin = writer.begin(1)
  writer.integer(4, originProduct)
  writer.integer(5, originCategory)
  writer.end(origin)
  writer.end(metadata)
}

const count = 1
const rate = 2
const gauge = 3

/** Type, value and interval in seconds of a series. */
function pointOf({ value, intervalMs }: MetricEvent): { type: number; value: number; interval: number | undefined } {
  switch (value.type) {
    case 'counter': {
      if (intervalMs === undefined || intervalMs === 0) return { type: count, value: value.value, interval: undefined }
      const seconds = intervalMs / 1000
      // The service only supports whole seconds.
      return { type: rate, value: value.value / seconds, interval: Math.max(Math.round(seconds), 1) }
    }
    case 'gauge':
      return { type: gauge, value: value.value, interval: undefined }
    case 'set':
      return { type: gauge, value: new Set(value.values).size, interval: undefined }
    default:
      throw new TypeError(`A ${value.type} is not a series.`)
  }
}

function sorted(events: readonly MetricEvent[], { namespace }: PayloadForms): Entry[] {
  const nowMs = Date.now()
  const entries: Entry[] = []
  const counters = new Map<string, number>()
  for (const event of events) {
    const seconds = Math.floor((event.timestamp?.ms ?? nowMs) / 1000)
    const own = event.namespace ?? namespace
    const entry = {
      event,
      name: own === undefined ? event.name : `${own}.${event.name}`,
      seconds,
      tags: event.tags === undefined ? '' : seriesKey(event),
    }
    if (event.value.type !== 'counter') {
      entries.push(entry)
      continue
    }
    const key = `${seconds} ${event.intervalMs ?? ''} ${seriesKey(event)}`
    const place = counters.get(key)
    const before = place === undefined ? undefined : (entries[place] as Entry)
    const both = before === undefined ? undefined : mergedEvent(before.event, event)
    if (place !== undefined && before !== undefined && both !== undefined) {
      entries[place] = { ...before, event: both }
    } else {
      counters.set(key, entries.length)
      entries.push(entry)
    }
  }
  return entries.sort(
    (left, right) =>
      compareKeys(left.event.value.type, right.event.value.type) ||
      compareKeys(left.name, right.name) ||
      left.seconds - right.seconds ||
      compareKeys(left.tags, right.tags),
  )
}

function partsOf(event: MetricEvent, hostKey: string): Parts {
  const parts: Parts = { host: undefined, device: undefined, sourceTypeName: undefined, resources: [], tags: [] }
  if (event.tags === undefined) return parts
  for (const [key, tag] of event.tags) {
    for (const value of typeof tag === 'string' || tag === null ? [tag] : tag) {
      if (value === null) parts.tags.push(key)
      else if (key === hostKey) parts.host = value
      else if (key === 'device') parts.device = value
      else if (key === 'source_type_name') parts.sourceTypeName = value
      else if (key.startsWith('resource.')) parts.resources.push({ type: key.slice('resource.'.length), name: value })
      else parts.tags.push(`${key}:${value}`)
    }
  }
  parts.tags.sort(compareKeys)
  return parts
}
