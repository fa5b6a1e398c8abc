// Decoder for the codec `native`: converts the protobuf message `EventArray` to events.

import { LogEvent, noMetadata } from '../../event/log.ts'
import { MetricEvent, type MetricTags, type MetricValue, type TagValue } from '../../event/metric.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { float, integer, isObject, setField, stringFromBytes, type Value, type ValueObject } from '../../event/value.ts'
import { MalformedProtobuf, ProtobufReader } from '../../formats/protobuf.ts'

/** The events of an `EventArray`. Throws `MalformedProtobuf`. */
export function readNative(bytes: Buffer, messageKey: string): (LogEvent | MetricEvent)[] {
  const events: (LogEvent | MetricEvent)[] = []
  const array = new ProtobufReader(bytes)
  while (array.next()) {
    if (array.field !== 1 && array.field !== 2 && array.field !== 3)
      throw new MalformedProtobuf('the message is not an array of events')
    const isMetrics = array.field === 2
    const items = array.message()
    while (items.next()) {
      if (items.field !== 1) items.skip()
      else events.push(isMetrics ? readMetric(items.message()) : readLog(items.message(), messageKey))
    }
  }
  return events
}

function readLog(reader: ProtobufReader, messageKey: string): LogEvent {
  let root: Value | undefined
  let metadata: Value | undefined
  const legacy: ValueObject = {}
  while (reader.next()) {
    if (reader.field === 1) readEntry(reader.message(), legacy)
    else if (reader.field === 2) root = readValue(reader.message(), 1)
    else if (reader.field === 3) metadata = readValue(reader.message(), 1)
    else reader.skip()
  }
  const fields = root === undefined ? legacy : isObject(root) ? root : { [messageKey]: root }
  const known = isObject(metadata) && Object.keys(metadata).length > 0
  return new LogEvent(fields, known ? { ...noMetadata, value: metadata as ValueObject } : noMetadata)
}

/** Maximum nesting of values. Messages with deeper nesting are rejected. */
const maxDepth = 128

function readValue(reader: ProtobufReader, depth: number): Value {
  if (depth > maxDepth) throw new MalformedProtobuf(`values are nested deeper than ${maxDepth}`)
  let value: Value = null
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        value = stringFromBytes(reader.bytes())
        break
      case 2:
        value = readTimestamp(reader.message())
        break
      case 4:
        value = integer(reader.signed())
        break
      case 5:
        value = float(reader.double())
        break
      case 6:
        value = reader.unsigned() !== 0n
        break
      case 7: {
        const object: ValueObject = {}
        const map = reader.message()
        while (map.next()) {
          if (map.field === 1) readEntry(map.message(), object, depth)
          else map.skip()
        }
        value = object
        break
      }
      case 8: {
        const items: Value[] = []
        const array = reader.message()
        while (array.next()) {
          if (array.field === 1) items.push(readValue(array.message(), depth + 1))
          else array.skip()
        }
        value = items
        break
      }
      default:
        reader.skip()
    }
  }
  return value
}

function readEntry(reader: ProtobufReader, object: ValueObject, depth = 1): void {
  let name = ''
  let value: Value = null
  while (reader.next()) {
    if (reader.field === 1) name = reader.text()
    else if (reader.field === 2) value = readValue(reader.message(), depth + 1)
    else reader.skip()
  }
  setField(object, name, value)
}

function readTimestamp(reader: ProtobufReader): Timestamp {
  let seconds = 0
  let nanos = 0
  while (reader.next()) {
    if (reader.field === 1) seconds = Number(reader.signed())
    else if (reader.field === 2) nanos = Number(reader.signed())
    else reader.skip()
  }
  const millis = Math.floor(nanos / 1_000_000)
  return new Timestamp(seconds * 1000 + millis, nanos - millis * 1_000_000)
}

function readMetric(reader: ProtobufReader): MetricEvent {
  let name = ''
  let timestamp: Timestamp | undefined
  let namespace: string | undefined
  let kind: 'incremental' | 'absolute' = 'incremental'
  let intervalMs: number | undefined
  let value: MetricValue | undefined
  const oldTags: MetricTags = new Map()
  const tags: MetricTags = new Map()
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        name = reader.text()
        break
      case 2:
        timestamp = readTimestamp(reader.message())
        break
      case 3: {
        const [key, text] = readTextEntry(reader.message())
        oldTags.set(key, text)
        break
      }
      case 4:
        kind = reader.unsigned() === 1n ? 'absolute' : 'incremental'
        break
      case 5:
        value = { type: 'counter', value: readDouble(reader.message()) }
        break
      case 6:
        value = { type: 'gauge', value: readDouble(reader.message()) }
        break
      case 7:
        value = { type: 'set', values: readTexts(reader.message()) }
        break
      case 11:
        namespace = reader.text()
        break
      case 12:
        value = readDistribution(reader.message())
        break
      case 16:
      case 17:
        value = readAggregate(reader.message(), reader.field === 16)
        break
      case 18:
        intervalMs = Number(reader.unsigned())
        break
      case 20: {
        const [key, tag] = readTag(reader.message())
        tags.set(key, tag)
        break
      }
      default:
        reader.skip()
    }
  }
  if (value === undefined) throw new MalformedProtobuf('a metric has no value of a known type')
  const shown = tags.size > 0 ? tags : oldTags
  return new MetricEvent({
    name,
    namespace: namespace === '' ? undefined : namespace,
    kind,
    value,
    timestamp,
    tags: shown.size > 0 ? shown : undefined,
    intervalMs: intervalMs === 0 ? undefined : intervalMs,
  })
}

function readDouble(reader: ProtobufReader): number {
  let value = 0
  while (reader.next()) {
    if (reader.field === 1) value = reader.double()
    else reader.skip()
  }
  return value
}

function readTexts(reader: ProtobufReader): string[] {
  const texts: string[] = []
  while (reader.next()) {
    if (reader.field === 1) texts.push(reader.text())
    else reader.skip()
  }
  return texts
}

function readTextEntry(reader: ProtobufReader): [string, string] {
  const entry: [string, string] = ['', '']
  while (reader.next()) {
    if (reader.field === 1) entry[0] = reader.text()
    else if (reader.field === 2) entry[1] = reader.text()
    else reader.skip()
  }
  return entry
}

function readDistribution(reader: ProtobufReader): MetricValue {
  const samples: { value: number; rate: number }[] = []
  let statistic: 'histogram' | 'summary' = 'histogram'
  while (reader.next()) {
    if (reader.field === 1) {
      const [value, rate] = readPair(reader.message())
      samples.push({ value, rate })
    } else if (reader.field === 2) statistic = reader.unsigned() === 1n ? 'summary' : 'histogram'
    else reader.skip()
  }
  return { type: 'distribution', samples, statistic }
}

function readAggregate(reader: ProtobufReader, isHistogram: boolean): MetricValue {
  const pairs: [number, number][] = []
  let count = 0
  let sum = 0
  while (reader.next()) {
    if (reader.field === 1) pairs.push(readPair(reader.message()))
    else if (reader.field === 2) count = Number(reader.unsigned())
    else if (reader.field === 3) sum = reader.double()
    else reader.skip()
  }
  return isHistogram
    ? { type: 'histogram', buckets: pairs.map(([upperLimit, count]) => ({ upperLimit, count })), count, sum }
    : { type: 'summary', quantiles: pairs.map(([quantile, value]) => ({ quantile, value })), count, sum }
}

/** Reads two numbers, each a double or a varint. */
function readPair(reader: ProtobufReader): [number, number] {
  const pair: [number, number] = [0, 0]
  while (reader.next()) {
    if (reader.field !== 1 && reader.field !== 2) reader.skip()
    else pair[reader.field - 1] = reader.type === 1 ? reader.double() : Number(reader.unsigned())
  }
  return pair
}

function readTag(reader: ProtobufReader): [string, TagValue] {
  let name = ''
  let values: (string | null)[] = []
  while (reader.next()) {
    if (reader.field === 1) name = reader.text()
    else if (reader.field === 2) values = readTagValues(reader.message())
    else reader.skip()
  }
  return [name, values.length === 1 ? (values[0] as string | null) : values]
}

function readTagValues(reader: ProtobufReader): (string | null)[] {
  const values: (string | null)[] = []
  while (reader.next()) {
    if (reader.field !== 1) {
      reader.skip()
      continue
    }
    let value: string | null = null
    const item = reader.message()
    while (item.next()) {
      if (item.field === 1) value = item.text()
      else item.skip()
    }
    values.push(value)
  }
  return values
}
