// Events in the formats of the three APIs of observability platform D. Records are new objects; events are not changed.

import { valueText } from '../../codecs/value-text.ts'
import { type MetricEvent, singleTagValue } from '../../event/metric.ts'
import { Float, float, getField, isFloat, isObject, setField, type Value, type ValueObject } from '../../event/value.ts'
import { isFailedJson, parseJson, writeJson } from '../../formats/json.ts'

export interface KeyNames {
  readonly messageKey: string
  readonly timestampKey: string
}

/**
 * A log record: message and time as members, all other fields as attributes. The user chooses the time format. @param
 * fields the fields to send @param time the formatted time of the event; undefined if it has no readable time
 */
export function logRecord(fields: ValueObject, time: Value | undefined, keys: KeyNames): ValueObject {
  const { messageKey, timestampKey } = keys
  const attributes: ValueObject = {}
  let count = 0
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value === undefined || name === messageKey || name === timestampKey) continue
    const kept = withoutArrays(value)
    if (kept === undefined) continue
    setField(attributes, name, kept)
    count++
  }
  const message = getField(fields, messageKey)
  const record: ValueObject = { message: message === undefined ? 'log from penstock' : valueText(message) }
  if (count > 0) record['attributes'] = attributes
  addTime(record, fields, timestampKey, time)
  return record
}

/** A flat event record with a type. */
export function eventRecord(fields: ValueObject, time: Value | undefined, keys: KeyNames): ValueObject {
  const { messageKey, timestampKey } = keys
  const record: ValueObject = {}
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value !== undefined && name !== timestampKey) flatten(record, name, value)
  }
  const message = getField(fields, messageKey)
  const members = typeof message === 'string' ? messageMembers(message) : undefined
  if (members !== undefined) {
    setField(record, messageKey, undefined)
    for (const name of Object.keys(members)) {
      const value = members[name]
      if (value !== undefined && value !== null) flattenMember(record, name, value)
    }
  }
  if (getField(record, 'eventType') === undefined) record['eventType'] = 'PenstockSink'
  addTime(record, fields, timestampKey, time)
  return record
}

/** A metric record, or a text with the reason why the metric cannot be sent. */
export function metricRecord(metric: MetricEvent): ValueObject | string {
  const { value, kind } = metric
  if (value.type !== 'gauge' && value.type !== 'counter') return 'unsupported metric type'
  if (!Number.isFinite(value.value)) return 'metric value is NaN or infinite'
  const isCount = value.type === 'counter' && kind === 'incremental'
  if (isCount && metric.intervalMs === undefined) return 'incremental counter missing interval'
  const record: ValueObject = {
    name: metric.name,
    type: isCount ? 'count' : 'gauge',
    value: float(value.value),
    timestamp: metric.timestamp?.ms ?? Date.now(),
  }
  if (isCount && metric.intervalMs !== undefined) record['interval.ms'] = metric.intervalMs
  if (metric.tags !== undefined && metric.tags.size > 0) {
    const attributes: ValueObject = {}
    for (const [name, tag] of metric.tags) {
      const text = singleTagValue(tag)
      if (text !== undefined) setField(attributes, name, text)
    }
    record['attributes'] = attributes
  }
  return record
}

/** Adds the time in the sink's format; without a format, a float counts seconds, and other values stay unchanged. */
function addTime(record: ValueObject, fields: ValueObject, key: string, time: Value | undefined): void {
  const value = time ?? getField(fields, key)
  if (value === undefined) return
  const isSeconds = time === undefined && isFloat(value)
  record['timestamp'] = isSeconds ? Math.round((value instanceof Float ? value.value : value) * 1000) : value
}

/** The value without arrays at any depth; undefined if it is an array. */
function withoutArrays(value: Value): Value | undefined {
  if (Array.isArray(value)) return undefined
  if (!isObject(value)) return value
  const copy: ValueObject = {}
  for (const name of Object.keys(value)) {
    const member = value[name]
    const kept = member === undefined ? undefined : withoutArrays(member)
    if (kept !== undefined) setField(copy, name, kept)
  }
  return copy
}

function flatten(record: ValueObject, name: string, value: Value): void {
  if (Array.isArray(value)) return
  if (!isObject(value)) {
    setField(record, name, value)
    return
  }
  for (const member of Object.keys(value)) {
    const inner = value[member]
    if (inner !== undefined) flatten(record, `${name}.${member}`, inner)
  }
}

/** Adds a member of a message under its path. The destination does not accept lists, so they become text. */
function flattenMember(record: ValueObject, name: string, value: Value): void {
  if (typeof value === 'string' || typeof value === 'boolean') setField(record, name, value)
  else if (typeof value === 'number' || typeof value === 'bigint') setField(record, name, float(Number(value)))
  else if (value instanceof Float) setField(record, name, value)
  else if (Array.isArray(value)) setField(record, name, writeJson(value))
  else if (isObject(value)) {
    for (const member of Object.keys(value)) {
      const inner = value[member]
      if (inner !== undefined && inner !== null) flattenMember(record, `${name}.${member}`, inner)
    }
  }
}

/** The members of a message that contains a JSON object. */
function messageMembers(message: string): ValueObject | undefined {
  if (!/^\s*\{/.test(message)) return undefined
  const value = parseJson(message)
  return !isFailedJson(value) && isObject(value) ? value : undefined
}
