// Builds events from lines: joins the parts of lines that the container runtime has split, groups lines, and collects the
// events until the reader passes them on. All collected events belong to one file.

import { LogEvent } from '../../event/log.ts'
import { type PathSegment, setPath } from '../../event/path.ts'
import { Timestamp } from '../../event/timestamp.ts'
import type { Bytes, ValueObject } from '../../event/value.ts'
import { MultilineAggregator, type MultilineRule } from '../../tailing/multiline.ts'
import type { ComponentEvents } from '../../telemetry/component-events.ts'
import { fact } from '../../telemetry/facts.ts'
import { bytesOf, type MergeLimit, PartialLine } from './partial.ts'
import type { Group, PodFile, StandardStream } from './pod-file.ts'

export interface AssemblerOptions {
  /** Whether parts of lines are joined. */
  readonly merges: boolean
  readonly mergeLimit: MergeLimit | undefined
  readonly rule: MultilineRule | undefined
  readonly hasFile: boolean
  readonly messageKey: string
  readonly timestampKey: string
  readonly ingestionPath: readonly PathSegment[] | undefined
}

export class LineAssembler {
  readonly #options: AssemblerOptions
  readonly #events: ComponentEvents
  readonly #hasFile: boolean
  /** Complete events that have not been sent yet. */
  collected: LogEvent[] = []

  constructor(options: AssemblerOptions, events: ComponentEvents) {
    this.#options = options
    this.#events = events
    this.#hasFile = options.hasFile
  }

  /** Returns the collected events and starts a new collection. */
  takeEvents(): LogEvent[] {
    const events = this.collected
    this.collected = []
    return events
  }

  partialLines(): PodFile['partials'] {
    const { mergeLimit } = this.#options
    return { stdout: new PartialLine(mergeLimit), stderr: new PartialLine(mergeLimit) }
  }

  /** The groups of a file; `file` returns the file once it exists. */
  groups(file: () => PodFile): PodFile['groups'] {
    const { rule } = this.#options
    if (rule === undefined) return undefined
    const group = (): Group =>
      new MultilineAggregator(rule, (text, first) => this.emit(file(), text, first.stream, first.timestamp, false))
    return { stdout: group(), stderr: group() }
  }

  emit(file: PodFile, message: string | Bytes, stream: StandardStream, timestamp: Timestamp, partial: boolean): void {
    const { orchestrator } = file
    if (orchestrator !== undefined && !partial) {
      const source_type = 'orchestrator_logs'
      const fields: ValueObject = this.#hasFile
        ? { file: file.path, message, orchestrator, source_type, stream, timestamp }
        : { message, orchestrator, source_type, stream, timestamp }
      this.collected.push(new LogEvent(fields, file.metadata))
      return
    }
    const { messageKey, timestampKey, ingestionPath } = this.#options
    const fields: ValueObject = { ...file.constants, [messageKey]: message, stream, [timestampKey]: timestamp }
    if (partial) fields['_partial'] = true
    if (ingestionPath !== undefined) setPath(fields, ingestionPath, Timestamp.now())
    this.collected.push(new LogEvent(fields, file.metadata))
  }

  /** Adds a line or a part of one. */
  add(
    file: PodFile,
    message: string | Bytes,
    stream: StandardStream,
    timestamp: Timestamp,
    part: boolean,
    start: number,
    now: number,
  ): void {
    if (this.joins(file, stream, part)) {
      this.addBytes(file, bytesOf(message), stream, timestamp, part, start, now)
    } else if (part) this.emit(file, message, stream, timestamp, true)
    else this.#complete(file, message, stream, timestamp, start, now)
  }

  /** Adds a line or a part of one as the bytes `[start, end)` of a chunk, because a split may divide a character. */
  addBytes(
    file: PodFile,
    bytes: Buffer,
    stream: StandardStream,
    timestamp: Timestamp,
    part: boolean,
    start: number,
    now: number,
  ): void {
    const pending = file.partials[stream]
    pending.add(bytes, timestamp, start, now)
    if (!part || pending.isFull) this.finishPartial(file, stream, !part, now)
  }

  /** Whether the next line of a stream must come as bytes. */
  joins(file: PodFile, stream: StandardStream, part: boolean): boolean {
    return this.#options.merges && (part || file.partials[stream].pending)
  }

  /** Passes on the joined parts of a line; `whole` is true if its last part was read. */
  finishPartial(file: PodFile, stream: StandardStream, whole: boolean, now: number): void {
    const partial = file.partials[stream]
    const timestamp = partial.timestamp as Timestamp
    const merged = partial.take()
    if (merged === 'too_long') {
      this.#events.error({
        type: 'condition_failed',
        stage: 'receiving',
        code: 'reading_line_from_kubernetes_log',
        message: 'A joined line is longer than `max_merged_line_bytes` and was discarded.',
        fields: { file: fact(file.path), max_merged_line_bytes: this.#options.mergeLimit?.maxBytes },
      })
      this.#events.discarded(1, false, 'The joined line is longer than `max_merged_line_bytes`.')
      return
    }
    if (merged.truncated) this.#events.count('k8s_merged_line_truncated_total')
    if (whole) this.#complete(file, merged.text, stream, timestamp, partial.start, now)
    else this.emit(file, merged.text, stream, timestamp, true)
  }

  /** Adds a whole line to its group, or to the collected events. */
  #complete(
    file: PodFile,
    message: string | Bytes,
    stream: StandardStream,
    timestamp: Timestamp,
    start: number,
    now: number,
  ): void {
    if (file.groups === undefined) this.emit(file, message, stream, timestamp, false)
    else file.groups[stream].add(message, start, { timestamp, stream }, now)
  }
}
