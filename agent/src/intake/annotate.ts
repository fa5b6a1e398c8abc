// Fields that sources add to decoded events: always the source type, and the time and the host if the codec found none. Frames that
// cannot be decoded are counted, and logged once for each piece of input.

import type { Decoded } from '../codecs/decoding/decoder.ts'
import type { Globals } from '../component.ts'
import { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { getValue, type PathSegment, parsePath, setPath } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField, setField } from '../event/value.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'

/** Adds missing fields to log events, in place; metric events are unchanged. */
export function annotate(
  events: readonly (LogEvent | MetricEvent)[],
  notes: Notes,
  time?: Timestamp,
  values?: readonly (string | number)[],
): void {
  for (let index = 0; index < events.length; index++) {
    const event = events[index] as LogEvent | MetricEvent
    if (event instanceof LogEvent) notes.add(event, time, values)
  }
}

interface Note {
  readonly segments: readonly PathSegment[]
  /** The value; undefined if each message has its own. */
  readonly value: string | number | undefined
  /** The index among the values of a message. */
  readonly place: number
}

const noValues: readonly (string | number)[] = []

/** The fields that one source adds. */
export class Notes {
  readonly #type: string
  readonly #typeKey: string
  readonly #timestampKey: string
  readonly #fields: readonly Note[]

  /** @param fields additional fields: path and value. An empty path adds no field; without a value, `add` must pass one. */
  constructor(
    type: string,
    schema: Globals['logSchema'],
    fields: readonly (readonly [string, string | number | undefined])[] = [],
  ) {
    this.#type = type
    this.#typeKey = schema.sourceTypeKey
    this.#timestampKey = schema.timestampKey
    this.#fields = fields.flatMap(([path, value], place) => {
      const segments = parsePath(path)?.segments ?? []
      return segments.length === 0 ? [] : [{ segments, value, place }]
    })
  }

  /** @param values the message's values, at the indexes of the fields without a value */
  add(event: LogEvent, time?: Timestamp, values = noValues): void {
    const fields = event.fields
    setField(fields, this.#typeKey, this.#type)
    if (getField(fields, this.#timestampKey) === undefined) {
      setField(fields, this.#timestampKey, time ?? Timestamp.now())
    }
    for (let index = 0; index < this.#fields.length; index++) {
      const { segments, value, place } = this.#fields[index] as Note
      if (getValue(fields, segments) === undefined)
        setPath(fields, segments, value ?? (values[place] as string | number))
    }
    event.changed()
  }
}

/** Counts and logs frames that could not be decoded. */
export function reportUndecoded(decoded: Decoded, events: ComponentEvents): void {
  if (decoded.failures.length === 0) return
  events.error({
    type: 'parser_failed',
    stage: 'processing',
    message: 'Frames could not be decoded; they are skipped.',
    fields: { reason: decoded.failures[decoded.failures.length - 1] },
    count: decoded.failures.length,
  })
}
