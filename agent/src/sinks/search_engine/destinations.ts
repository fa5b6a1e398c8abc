// The destination of documents: the index and action of an event in mode `bulk`, its data stream in mode `data_stream`.
// Counts and discards an event without one.

import { valueText } from '../../codecs/value-text.ts'
import type { SinkContext } from '../../component.ts'
import { templateFailed } from '../../delivery/failed-events.ts'
import { LogEvent } from '../../event/log.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { getField, isObject, setField, type Value, type ValueObject } from '../../event/value.ts'
import { zoneOrUtc } from '../../formats/timezone.ts'
import type { BulkAction } from '../../http/bulk.ts'
import { fact } from '../../telemetry/facts.ts'
import { commonLikeness, compileTemplate, type Likeness, type Template } from '../../template.ts'
import type { ActionPlace } from './action-lines.ts'

/** How and where an event is written. */
export interface Destination extends ActionPlace {
  readonly document: LogEvent
}

export interface Destinations {
  /** Templates that may use the date of an event. */
  readonly dated: readonly Template[]
  /** The facts shared by events with the same destination; undefined if unknown. */
  readonly likeness: Likeness | undefined
  /** Number of events counted so far. If it grows with an event, the next event must be checked too. */
  readonly counted: number
  /** Undefined if the event has been discarded. */
  of(event: LogEvent): Destination | undefined
}

export interface IndexOptions {
  readonly action: string
  readonly index: string
  readonly template_fallback_index?: string | undefined
  readonly pipeline?: string | undefined
}

export class Indices implements Destinations {
  readonly dated: readonly Template[]
  readonly likeness: Likeness | undefined
  #faults = 0
  readonly #context: SinkContext
  readonly #action: Template
  readonly #index: Template
  readonly #fallback: string | undefined
  readonly #pipeline: Template | undefined

  constructor(options: IndexOptions, context: SinkContext) {
    const { timestampKey } = context.globals.logSchema
    this.#context = context
    this.#action = compileTemplate(options.action, timestampKey)
    const zone = zoneOrUtc(context.globals.timezone)
    this.#index = compileTemplate(options.index, timestampKey, zone)
    this.#fallback = options.template_fallback_index
    this.#pipeline = options.pipeline === undefined ? undefined : compileTemplate(options.pipeline, timestampKey, zone)
    const ofPipeline = this.#pipeline === undefined ? [] : [this.#pipeline]
    this.dated = [this.#index, ...ofPipeline]
    this.likeness = commonLikeness([this.#action, this.#index, ...ofPipeline])
  }

  get counted(): number {
    return this.#faults + this.#index.unreadableTimes + (this.#pipeline?.unreadableTimes ?? 0)
  }

  of(event: LogEvent): Destination | undefined {
    const action = this.#actionOf(event)
    if (action === undefined) return undefined
    const name = this.#nameOf(event)
    if (name === undefined) return undefined
    if (this.#pipeline === undefined) return { action, name, document: event }
    const pipeline = this.#pipeline.render(event)
    if (pipeline !== undefined) return { action, name, document: event, ...(pipeline === '' ? {} : { pipeline }) }
    this.#faults++
    templateFailed(this.#context, 'bulk.pipeline', this.#pipeline, event, true)
    return undefined
  }

  #nameOf(event: LogEvent): string | undefined {
    const name = this.#index.render(event)
    if (name !== undefined) return name
    this.#faults++
    templateFailed(this.#context, 'bulk.index', this.#index, event, this.#fallback === undefined)
    return this.#fallback
  }

  #actionOf(event: LogEvent): BulkAction | undefined {
    const name = this.#action.render(event)
    if (name === 'index' || name === 'create') return name
    const { events } = this.#context
    this.#faults++
    if (name === undefined) {
      templateFailed(this.#context, 'bulk.action', this.#action, event, true)
      return undefined
    }
    events.error({
      type: 'template_failed',
      stage: 'processing',
      message: 'The action of an event is neither `index` nor `create`; the event is discarded.',
      fields: { field: fact('bulk.action') },
    })
    events.discarded(1, false, 'The bulk action is not supported.')
    return undefined
  }
}

export interface DataStreamOptions {
  readonly type: string
  readonly dataset: string
  readonly namespace: string
  readonly auto_routing: boolean
  readonly sync_fields: boolean
}

type Part = 'type' | 'dataset' | 'namespace'

export class DataStreams implements Destinations {
  readonly dated: readonly Template[]
  readonly likeness = undefined
  readonly counted = 0
  readonly #context: SinkContext
  readonly #options: DataStreamOptions
  readonly #parts: Readonly<Record<Part, Template>>

  constructor(options: DataStreamOptions, context: SinkContext) {
    const { timestampKey } = context.globals.logSchema
    const zone = zoneOrUtc(context.globals.timezone)
    this.#context = context
    this.#options = options
    this.#parts = {
      type: compileTemplate(options.type, timestampKey, zone),
      dataset: compileTemplate(options.dataset, timestampKey, zone),
      namespace: compileTemplate(options.namespace, timestampKey, zone),
    }
    this.dated = Object.values(this.#parts)
  }

  of(event: LogEvent): Destination | undefined {
    const found = getField(event.fields, 'data_stream')
    const own = isObject(found) ? found : undefined
    const type = this.#partOf(event, 'type', own)
    const dataset = type === undefined ? undefined : this.#partOf(event, 'dataset', own)
    const namespace = dataset === undefined ? undefined : this.#partOf(event, 'namespace', own)
    if (type === undefined || dataset === undefined || namespace === undefined) return undefined
    const fields: ValueObject = { ...event.fields }
    if (this.#options.sync_fields) {
      const synced: ValueObject = { type, dataset, namespace }
      fields['data_stream'] = own === undefined ? synced : { ...synced, ...present(own) }
    }
    this.#setTime(fields)
    const name = [type, dataset, namespace].filter((part) => part !== '').join('-')
    return { action: 'create', name, document: new LogEvent(fields, event.metadata) }
  }

  #partOf(event: LogEvent, name: Part, own: ValueObject | undefined): string | undefined {
    const value = this.#options.auto_routing && own !== undefined ? getField(own, name) : undefined
    if (value !== undefined && value !== null) return valueText(value)
    const template = this.#parts[name]
    const text = template.render(event)
    if (text === undefined) templateFailed(this.#context, `data_stream.${name}`, template, event, true)
    return text
  }

  /** Documents of data streams have their time in `@timestamp`. */
  #setTime(fields: ValueObject): void {
    const { timestampKey } = this.#context.globals.logSchema
    const timestamp = getField(fields, timestampKey)
    if (timestampKey !== '@timestamp') {
      if (timestamp !== undefined) setField(fields, timestampKey, undefined)
      if (timestamp !== undefined || getField(fields, '@timestamp') === undefined) {
        fields['@timestamp'] = timestamp ?? Timestamp.now()
      }
    } else if (timestamp === undefined) {
      fields['@timestamp'] = Timestamp.now()
    }
  }
}

/** Members of an object that are not undefined. */
function present(fields: ValueObject): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, Value] => entry[1] !== undefined))
}
