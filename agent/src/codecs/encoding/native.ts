// Codec `native`: writes an event as the protobuf message `EventArray` that agents of this design exchange.
// The format defines the field numbers (`logs` 1, `metrics` 2, …). Maps are sorted by key.

import type { Body } from '../../event/body.ts'
import { LogEvent } from '../../event/log.ts'
import type { MetricEvent } from '../../event/metric.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { Bytes, Float, Regex, sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { ProtobufWriter } from '../../formats/protobuf.ts'

/** Writes one event as an `EventArray` of one element. */
export function writeNative(event: LogEvent | MetricEvent, fields: ValueObject | undefined, body: Body): void {
  const writer = new ProtobufWriter(body)
  const array = writer.begin(event instanceof LogEvent ? 1 : 2)
  const item = writer.begin(1)
  if (event instanceof LogEvent) {
    writeValue(writer, 2, fields ?? event.fields)
    writeValue(writer, 3, event.metadata.value)
  } else {
    writeMetric(writer, event)
  }
  writer.end(item)
  writer.end(array)
}

function writeValue(writer: ProtobufWriter, field: number, value: Value): void {
  const start = writer.begin(field)
  if (typeof value === 'string') writer.text(1, value)
  else if (typeof value === 'boolean') writer.integer(6, value ? 1 : 0)
  else if (typeof value === 'bigint') writer.integer(4, value)
  else if (typeof value === 'number') {
    if (Number.isInteger(value)) writer.integer(4, value)
    else writer.double(5, value)
  } else if (value === null) writer.integer(9, 0)
  else if (value instanceof Float) writer.double(5, value.value)
  else if (value instanceof Bytes) writer.bytes(1, value.bytes)
  else if (value instanceof Regex) writer.text(1, value.source)
  else if (value instanceof Timestamp) writeTimestamp(writer, 2, value)
  else if (Array.isArray(value)) {
    const array = writer.begin(8)
    for (const item of value) writeValue(writer, 1, item)
    writer.end(array)
  } else {
    const map = writer.begin(7)
    for (const name of sortedFieldNames(value)) {
      const entry = writer.begin(1)
      writer.text(1, name)
      writeValue(writer, 2, value[name] as Value)
      writer.end(entry)
    }
    writer.end(map)
  }
  writer.end(start)
}

function writeTimestamp(writer: ProtobufWriter, field: number, instant: Timestamp): void {
  const start = writer.begin(field)
  const seconds = Math.floor(instant.ms / 1000)
  const nanos = (instant.ms - seconds * 1000) * 1_000_000 + instant.ns
  if (seconds !== 0) writer.integer(1, seconds)
  if (nanos !== 0) writer.integer(2, nanos)
  writer.end(start)
}

function writeMetric(writer: ProtobufWriter, metric: MetricEvent): void {
  writer.text(1, metric.name)
  if (metric.timestamp !== undefined) writeTimestamp(writer, 2, metric.timestamp)
  if (metric.kind === 'absolute') writer.integer(4, 1)
  const value = metric.value
  switch (value.type) {
    case 'counter':
    case 'gauge': {
      const start = writer.begin(value.type === 'counter' ? 5 : 6)
      writer.double(1, value.value)
      writer.end(start)
      break
    }
    case 'set': {
      const start = writer.begin(7)
      for (const member of value.values) writer.text(1, member)
      writer.end(start)
      break
    }
    case 'distribution': {
      const start = writer.begin(12)
      for (const sample of value.samples) {
        const item = writer.begin(1)
        writer.double(1, sample.value)
        writer.integer(2, sample.rate)
        writer.end(item)
      }
      if (value.statistic === 'summary') writer.integer(2, 1)
      writer.end(start)
      break
    }
    case 'histogram': {
      const start = writer.begin(16)
      for (const bucket of value.buckets) {
        const item = writer.begin(1)
        writer.double(1, bucket.upperLimit)
        writer.integer(2, bucket.count)
        writer.end(item)
      }
      writer.integer(2, value.count)
      writer.double(3, value.sum)
      writer.end(start)
      break
    }
    case 'summary': {
      const start = writer.begin(17)
      for (const quantile of value.quantiles) {
        const item = writer.begin(1)
        writer.double(1, quantile.quantile)
        writer.double(2, quantile.value)
        writer.end(item)
      }
      writer.integer(2, value.count)
      writer.double(3, value.sum)
      writer.end(start)
      break
    }
  }
  if (metric.namespace !== undefined) writer.text(11, metric.namespace)
  if (metric.intervalMs !== undefined) writer.integer(18, metric.intervalMs)
  for (const [name, tag] of metric.tags ?? []) {
    const entry = writer.begin(20)
    writer.text(1, name)
    const values = writer.begin(2)
    for (const item of Array.isArray(tag) ? (tag as readonly (string | null)[]) : [tag as string | null]) {
      const start = writer.begin(1)
      if (item !== null) writer.text(1, item)
      writer.end(start)
    }
    writer.end(values)
    writer.end(entry)
  }
}
