// A Kubernetes event as a log event. Each field is checked before use, because any client
// that may create events can write one.

import type { Globals } from '../../component.ts'
import { LogEvent } from '../../event/log.ts'
import type { Timestamp } from '../../event/timestamp.ts'
import type { ValueObject } from '../../event/value.ts'
import { parseRfc3339 } from '../../formats/datetime.ts'
import type { WatchedObject } from '../../kube/watch.ts'
import { isTable } from '../../schema/walk.ts'

export type KubeEvent = WatchedObject & Readonly<Record<string, unknown>>

/** An event with the fields that a position needs. */
export interface Occurrence {
  readonly uid: string
  readonly version: string
  /** Time of the last occurrence. */
  readonly last: Timestamp
  readonly event: LogEvent
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
const timeOf = (value: unknown) => (typeof value === 'string' ? parseRfc3339(value) : undefined)

/**
 * Converts an object to an event, or returns what is wrong with it.
 * @param includesObject whether the event also contains the object
 */
export function readEvent(object: unknown, schema: Globals['logSchema'], includesObject: boolean): Occurrence | string {
  if (!isTable(object) || !isTable(object['metadata'])) return 'It has no metadata.'
  const { metadata } = object
  const uid = textOf(metadata['uid'])
  const version = textOf(metadata['resourceVersion'])
  if (uid === undefined || version === undefined) return 'It has no uid or no resourceVersion.'
  const series = isTable(object['series']) ? object['series'] : {}
  const source = isTable(object['deprecatedSource']) ? object['deprecatedSource'] : {}
  const made = timeOf(object['eventTime']) ?? timeOf(metadata['creationTimestamp'])
  const first = timeOf(object['deprecatedFirstTimestamp']) ?? made
  const last = timeOf(series['lastObservedTime']) ?? timeOf(object['deprecatedLastTimestamp']) ?? made
  if (last === undefined) return 'It has no readable time.'
  const count = [series['count'], object['deprecatedCount']].find((value) => Number.isSafeInteger(value)) as number
  const fields: ValueObject = {
    [schema.messageKey]: textOf(object['note']) ?? '',
    [schema.timestampKey]: last,
    [schema.sourceTypeKey]: 'orchestrator_events',
    orchestrator: {
      event_name: textOf(metadata['name']),
      event_namespace: textOf(metadata['namespace']),
      event_uid: uid,
      type: textOf(object['type']),
      reason: textOf(object['reason']),
      action: textOf(object['action']),
      count: count > 0 ? count : 1,
      first_timestamp: first ?? last,
      last_timestamp: last,
      regarding: reference(object['regarding']),
      related: reference(object['related']),
      reporting_controller: textOf(object['reportingController']) ?? textOf(source['component']),
      reporting_instance: textOf(object['reportingInstance']) ?? textOf(source['host']),
      // The object comes from JSON, so event fields can hold all of its values.
      ...(includesObject ? { object: object as ValueObject } : {}),
    },
  }
  return { uid, version, last, event: new LogEvent(fields) }
}

function reference(value: unknown): ValueObject | undefined {
  if (!isTable(value)) return undefined
  return {
    api_version: textOf(value['apiVersion']),
    kind: textOf(value['kind']),
    namespace: textOf(value['namespace']),
    name: textOf(value['name']),
    uid: textOf(value['uid']),
    field_path: textOf(value['fieldPath']),
  }
}
