// What sources add to the events of their codec: the source type always, the time and the host where the codec found none.
// And what becomes of frames that could not be decoded: counted and logged once for each piece of input.

import type { Decoded } from '../codecs/decoding/decoder.ts'
import type { Globals } from '../component.ts'
import { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { getValue, type PathSegment, parsePath, setPath } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField, setField } from '../event/value.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'

/** Adds what is missing to log events, in place; metric events stay as they are. */
export function annotate(events: readonly (LogEvent | MetricEvent)[], notes: Notes): void {
  for (let index = 0; index < events.length; index++) {
    const event = events[index] as LogEvent | MetricEvent
    if (event instanceof LogEvent) notes.add(event)
  }
}

interface Note {
  readonly segments: readonly PathSegment[]
  readonly value: string | number
}

/** The fields that one source adds. */
export class Notes {
  readonly #type: string
  readonly #typeKey: string
  readonly #timestampKey: string
  readonly #fields: readonly Note[]

  /** @param fields further fields by their path; an empty path adds none */
  constructor(
    type: string,
    schema: Globals['logSchema'],
    fields: readonly (readonly [string, string | number])[] = [],
  ) {
    this.#type = type
    this.#typeKey = schema.sourceTypeKey
    this.#timestampKey = schema.timestampKey
    this.#fields = fields.flatMap(([path, value]) => {
      const segments = parsePath(path)?.segments ?? []
      return segments.length === 0 ? [] : [{ segments, value }]
    })
  }

  add(event: LogEvent): void {
    const fields = event.fields
    setField(fields, this.#typeKey, this.#type)
    if (getField(fields, this.#timestampKey) === undefined) setField(fields, this.#timestampKey, Timestamp.now())
    for (let index = 0; index < this.#fields.length; index++) {
      const { segments, value } = this.#fields[index] as Note
      if (getValue(fields, segments) === undefined) setPath(fields, segments, value)
    }
    event.changed()
  }
}

/** Counts and logs what could not be decoded. */
export function reportUndecoded(decoded: Decoded, events: ComponentEvents): void {
  if (decoded.failures.length > 0) {
    events.error({
      type: 'parser_failed',
      stage: 'processing',
      message: 'Frames could not be decoded; they are skipped.',
      fields: { reason: decoded.failures[decoded.failures.length - 1] },
      count: decoded.failures.length,
    })
  }
  if (decoded.broken !== undefined) {
    events.error({
      type: 'parser_failed',
      stage: 'processing',
      message: 'The stream cannot be read any further.',
      fields: { reason: decoded.broken },
    })
  }
}
