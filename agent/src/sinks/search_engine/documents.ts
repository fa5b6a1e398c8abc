// Writes events as documents, each with its action line.

import type { ByteBatch } from '../../bytes/byte-batch.ts'
import { maxAffix } from '../../bytes/kernel.ts'
import type { Encoder } from '../../codecs/encoding/encoder.ts'
import { scalarText } from '../../codecs/value-text.ts'
import type { SinkContext } from '../../component.ts'
import type { AnyEvent } from '../../delivery/batcher.ts'
import { encoderFailed, templateFailed } from '../../delivery/failed-events.ts'
import { LineTarget } from '../../delivery/line-target.ts'
import type { OpenRequest } from '../../delivery/request.ts'
import { LogEvent } from '../../event/log.ts'
import { getPath, type Path, removePath } from '../../event/path.ts'
import type { Value } from '../../event/value.ts'
import { warnedOnce } from '../../telemetry/warned-once.ts'
import type { Template } from '../../template.ts'
import { unreadableEventTimes } from '../../time-field.ts'
import { type MetricLogForm, metricLog } from '../../transforms/metric-log.ts'
import type { ActionLines } from './action-lines.ts'
import type { Destination, Destinations } from './destinations.ts'

/** Bytes of action lines between two looks at the length of the body. */
const maxActionBytes = 1 << 20

export interface DocumentOptions {
  readonly destinations: Destinations
  readonly lines: ActionLines
  readonly encoder: Encoder
  /** Field with the ids of documents. */
  readonly id: Path | undefined
  readonly version: Template | undefined
  /** How metric events become documents. */
  readonly metrics: MetricLogForm
  /** A request ends when its body is larger than this. */
  readonly maxWritten: number
}

export class DocumentWriter {
  readonly #context: SinkContext
  readonly #options: DocumentOptions
  readonly #reportUnusableIds: (count: number) => void
  readonly #reportUnreadableTimes: (count: number) => void
  #unusableIds = 0
  /** The destination of the byte lines being written. */
  #alike: Destination | undefined
  readonly #target: LineTarget

  constructor(context: SinkContext, options: DocumentOptions, idOption: string | undefined) {
    this.#context = context
    this.#options = options
    const frames = { delimiter: 0x0a, isSeparator: false, fields: options.encoder.lineFields }
    this.#target = new LineTarget(frames, (events, from, _, open) => {
      // Lines that the kernel cannot write are written one by one.
      this.#writeDocument({ ...(this.#alike as Destination), document: events[from] as LogEvent }, open)
    })
    this.#reportUnreadableTimes = unreadableEventTimes(context)
    this.#reportUnusableIds = warnedOnce(context.events, {
      type: 'conversion_failed',
      stage: 'processing',
      code: 'unusable_id',
      message: 'The field in `id_key` holds a list or an object; the destination generates an id for the document.',
      fields: { field: idOption },
    })
  }

  /** Whether the writer accepts byte lines. */
  get takesBytes(): boolean {
    const { encoder, id } = this.#options
    return encoder.lineFields !== undefined && id === undefined
  }

  /** Writes the events `[from, to)` into a request. */
  write(events: readonly AnyEvent[], from: number, to: number, open: OpenRequest): void {
    const { destinations, metrics, maxWritten } = this.#options
    const { body } = open
    for (let at = from; at < to; at++) {
      const event = events[at] as AnyEvent
      const destination = destinations.of(event instanceof LogEvent ? event : metricLog(event, metrics))
      if (destination === undefined) continue
      if (!this.#writeDocument(destination, open)) continue
      // The action line may be far longer than its document, because templates may contain any text.
      if (body.length > maxWritten) {
        open.stoppedAt = at + 1
        break
      }
    }
    this.#report()
  }

  #report(): void {
    this.#reportUnusableIds(this.#unusableIds)
    this.#unusableIds = 0
    const { dated } = this.#options.destinations
    this.#reportUnreadableTimes(Math.max(...dated.map((template) => template.takeUnreadableTimes())))
  }

  /** The same for byte lines: consecutive lines with one destination are written at once. */
  writeLines(batch: ByteBatch, from: number, to: number, open: OpenRequest): void {
    const { destinations, maxWritten } = this.#options
    const { likeness } = destinations
    const groups = likeness === undefined ? undefined : batch.groups(likeness.fields, likeness.second)
    if (groups === undefined) {
      this.write(batch.events, from, to, open)
      return
    }
    let at = from
    while (at < to && open.stoppedAt === undefined) {
      const group = groups[at] as number
      let end = at + 1
      if (group < 0) this.write([batch.eventAt(at)], 0, 1, open)
      else {
        const before = destinations.counted
        const destination = destinations.of(batch.eventAt(at))
        if (destination !== undefined) {
          const line = this.#options.lines.withoutId(destination)
          const stop = Math.min(to, at + Math.ceil(maxActionBytes / line.length))
          // The event itself was counted, so other events cannot share the result.
          if (before === destinations.counted) while (end < stop && groups[end] === group) end++
          this.#writeAlike(batch, at, end, destination, line, open)
        }
      }
      at = end
      if (open.stoppedAt !== undefined || open.body.length > maxWritten) open.stoppedAt = at
    }
    this.#report()
  }

  /** Writes events of one destination. */
  #writeAlike(
    batch: ByteBatch,
    from: number,
    to: number,
    destination: Destination,
    line: Buffer,
    open: OpenRequest,
  ): void {
    if (line.length > maxAffix()) {
      for (let at = from; at < to; at++) this.#writeDocument({ ...destination, document: batch.eventAt(at) }, open)
      return
    }
    this.#alike = destination
    this.#target.prefix = line
    this.#target.encode(batch, from, to, open)
  }

  /** False if the event is not sent. */
  #writeDocument(destination: Destination, open: OpenRequest): boolean {
    const { document } = destination
    const { body } = open
    const { lines, encoder, id: idPath, version } = this.#options
    const start = body.length
    const id = this.#idOf(document)
    let problem: string | undefined
    if (id === undefined) {
      body.writeBytes(lines.withoutId(destination))
      problem = encoder.encode(document, body)
    } else {
      const documentVersion = version?.render(document)
      if (version !== undefined && documentVersion === undefined) {
        templateFailed(this.#context, 'bulk.version', version, document, true)
        return false
      }
      body.writeText(lines.withId(destination, id, documentVersion))
      problem = encoder.encode(withoutField(document, idPath as Path), body)
    }
    if (problem !== undefined) {
      body.truncate(start)
      encoderFailed(this.#context, problem)
      return false
    }
    body.writeByte(0x0a)
    open.mark(start)
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

/** The event without a field. Metadata is not sent, so it may stay. */
function withoutField(event: LogEvent, { root, segments }: Path): LogEvent {
  if (root === 'metadata') return event
  const without = event.copy()
  removePath(without.fields, segments)
  without.changed()
  return without
}
