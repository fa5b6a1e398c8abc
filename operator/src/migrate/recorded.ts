// Reads single events from recordings of old agents. OTLP and Loki messages contain many events, and use their own names for their parts.

import { isTable, listOf, tableOf } from '@penstock/agent/schema'
import type { EventFields } from './compare.ts'

/** The events in an object of a recording. An object that is not a known message is itself an event. */
export function recordedEvents(object: EventFields): readonly EventFields[] {
  if (Array.isArray(object['resourceLogs'])) return object['resourceLogs'].flatMap((each) => ofResource(tableOf(each)))
  if (Array.isArray(object['streams'])) return object['streams'].flatMap((each) => ofStream(tableOf(each)))
  const names = Object.keys(object).sort().join(' ')
  // The format of `logcli query -o jsonl`.
  if (names === 'labels line timestamp') {
    const { labels, line, timestamp } = object
    return [{ message: line, labels, timestamp }]
  }
  // The output of the transform before a Loki sink, which does not send empty parts.
  if (names === 'labels message metadata tenant timestamp') return [withoutEmpty(object)]
  return [object]
}

/** One event for each record of a resource, with the attributes of both. */
function ofResource({ resource, scopeLogs }: EventFields): readonly EventFields[] {
  return listOf(scopeLogs).flatMap((each) => {
    const { scope, logRecords } = tableOf(each)
    return listOf(logRecords).map((record) => {
      const { body, attributes, ...rest } = tableOf(record)
      const { attributes: ofScope, ...named } = tableOf(scope)
      return withoutEmpty({
        ...rest,
        body: plainValue(body),
        attributes: attributesOf(attributes),
        resource: attributesOf(tableOf(resource)['attributes']),
        scope: withoutEmpty({ ...named, attributes: attributesOf(ofScope) }),
      })
    })
  })
}

function attributesOf(list: unknown): EventFields {
  return Object.fromEntries(
    listOf(list).map((each) => {
      const { key, value } = tableOf(each)
      return [String(key), plainValue(value)]
    }),
  )
}

function plainValue(given: unknown): unknown {
  const [[kind, value] = []] = Object.entries(tableOf(given))
  if (kind === 'intValue') {
    const whole = Number(value)
    return Number.isSafeInteger(whole) ? whole : { intValue: String(value) }
  }
  if (kind === 'doubleValue') {
    // Without the kind, a double without a fraction would equal the integer.
    const double = Number(value)
    return Number.isInteger(double) || !Number.isFinite(double) ? { doubleValue: String(double) } : double
  }
  if (kind === 'arrayValue') return listOf(tableOf(value)['values']).map(plainValue)
  if (kind === 'kvlistValue') return attributesOf(tableOf(value)['values'])
  return value
}

/** One event for each entry of a stream: time, line, and structured metadata. */
function ofStream({ stream, values }: EventFields): readonly EventFields[] {
  return listOf(values).map((entry) => {
    const [timestamp, message, metadata] = listOf(entry)
    return withoutEmpty({ message, labels: stream, timestamp, metadata })
  })
}

function withoutEmpty(event: EventFields): EventFields {
  const isEmpty = (value: unknown) =>
    value === undefined || value === '' || (isTable(value) && Object.keys(value).length === 0)
  return Object.fromEntries(Object.entries(event).filter(([, value]) => !isEmpty(value)))
}
