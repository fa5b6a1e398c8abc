// Writes events as documents, each with the line before it.

import type { Encoder } from '../../codecs/encoding/encoder.ts'
import { scalarText } from '../../codecs/value-text.ts'
import type { SinkContext } from '../../component.ts'
import type { AnyEvent } from '../../delivery/batcher.ts'
import type { OpenRequest } from '../../delivery/request.ts'
import { LogEvent } from '../../event/log.ts'
import { getPath, type Path, removePath } from '../../event/path.ts'
import type { Value } from '../../event/value.ts'
import { encoderFailed, templateFailed } from '../../http/sink.ts'
import { warnedOnce } from '../../telemetry/warned-once.ts'
import type { Template } from '../../template.ts'
import { unreadableEventTimes } from '../../time-field.ts'
import { metricLog } from '../../transforms/metric-log.ts'
import type { ActionLines } from './action-lines.ts'
import type { Destination, Destinations } from './destinations.ts'

export interface DocumentOptions {
  readonly destinations: Destinations
  readonly lines: ActionLines
  readonly encoder: Encoder
  /** Field with the ids of documents. */
  readonly id: Path | undefined
  readonly version: Template | undefined
  /** How metric events become documents. */
  readonly metrics: Parameters<typeof metricLog>[1]
  /** A request that has become larger than this ends. */
  readonly maxWritten: number
}

export class DocumentWriter {
  readonly #context: SinkContext
  readonly #options: DocumentOptions
  readonly #reportUnusableIds: (count: number) => void
  readonly #reportUnreadableTimes: (count: number) => void
  #unusableIds = 0

  constructor(context: SinkContext, options: DocumentOptions, idOption: string | undefined) {
    this.#context = context
    this.#options = options
    this.#reportUnreadableTimes = unreadableEventTimes(context)
    this.#reportUnusableIds = warnedOnce(context.events, {
      type: 'conversion_failed',
      stage: 'processing',
      code: 'unusable_id',
      message: 'The field that `id_key` names holds a list or an object; the destination makes an id for the document.',
      fields: { field: idOption },
    })
  }

  /** Whether no objects are needed of events that are lines still. */
  get takesBytes(): boolean {
    const { encoder, id } = this.#options
    return encoder.isPlainJson && id === undefined
  }

  /** Writes the events `[from, to)` into a request. */
  write(events: readonly AnyEvent[], from: number, to: number, open: OpenRequest): void {
    const { destinations, metrics, maxWritten } = this.#options
    const { body } = open
    for (let at = from; at < to; at++) {
      const event = events[at] as AnyEvent
      const destination = destinations.of(event instanceof LogEvent ? event : metricLog(event, metrics))
      if (destination === undefined) continue
      const start = body.length
      if (!this.#writeDocument(destination, open)) continue
      open.mark(start)
      // The line before a document may be far longer than the document: templates hold any text.
      if (body.length > maxWritten) {
        open.stoppedAt = at + 1
        break
      }
    }
    this.#reportUnusableIds(this.#unusableIds)
    this.#unusableIds = 0
    this.#reportUnreadableTimes(Math.max(...destinations.dated.map((template) => template.takeUnreadableTimes())))
  }

  /** False if the event is not sent. */
  #writeDocument({ action, name, document }: Destination, { body }: OpenRequest): boolean {
    const { lines, encoder, id: idPath, version } = this.#options
    const start = body.length
    const id = this.#idOf(document)
    let problem: string | undefined
    if (id === undefined) {
      body.writeText(lines.withoutId(action, name))
      problem = encoder.encode(document, body)
    } else {
      const documentVersion = version?.render(document)
      if (version !== undefined && documentVersion === undefined) {
        templateFailed(this.#context, 'bulk.version', version, document, true)
        return false
      }
      body.writeText(lines.withId(action, name, id, documentVersion))
      const withoutId = document.copy()
      removePath(withoutId.fields, (idPath as Path).segments)
      withoutId.changed()
      problem = encoder.encode(withoutId, body)
    }
    if (problem !== undefined) {
      body.truncate(start)
      encoderFailed(this.#context, problem)
      return false
    }
    body.writeByte(0x0a)
    return true
  }

  #idOf(document: LogEvent): string | undefined {
    const { id: path } = this.#options
    const value: Value | undefined = path === undefined ? undefined : getPath(document, path)
    if (value === undefined || value === null) return undefined
    const id = scalarText(value)
    if (id === undefined) this.#unusableIds++
    return id
  }
}
