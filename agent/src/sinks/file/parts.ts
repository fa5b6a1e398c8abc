// The writes of a batch to each of its files. Consecutive byte lines for one file are written at once.

import { ByteBatch } from '../../bytes/byte-batch.ts'
import type { StreamEncoder } from '../../codecs/encoding/encoder.ts'
import type { SinkContext } from '../../component.ts'
import type { Batch } from '../../event/batch.ts'
import { Body, BodyPool } from '../../event/body.ts'
import type { LogEvent } from '../../event/log.ts'
import type { MetricEvent } from '../../event/metric.ts'
import type { Template } from '../../template.ts'
import { unreadableEventTimes } from '../../time-field.ts'
import { LineStream } from '../stream/line-stream.ts'
import { Unencoded } from '../stream/unencoded.ts'

/** Number of spare bodies, and the size limit of those from batches with more files. */
const keptBodies = 16
const smallBody = 4096

/** The part of one batch for one file. */
export interface FilePart {
  readonly path: string
  readonly body: Body
  count: number
  bytes: number
}

export class FileParts {
  /** Whether the encoder accepts byte lines. */
  readonly takesBytes: boolean
  readonly #context: SinkContext
  readonly #path: Template
  readonly #encoder: StreamEncoder
  readonly #lines: LineStream | undefined
  readonly #reportUnreadableTimes: (count: number) => void
  readonly #bodies = new BodyPool(64 << 10, keptBodies)
  /** The parts of the current batch by path. */
  #parts = new Map<string, FilePart>()
  #unencoded = new Unencoded()
  /** The most recently used part. */
  #part: FilePart | undefined

  constructor(path: Template, encoder: StreamEncoder, context: SinkContext) {
    this.#context = context
    this.#path = path
    this.#encoder = encoder
    this.#lines = LineStream.of(encoder, (event, problem) => this.#failed(event, problem))
    this.takesBytes = this.#lines !== undefined
    this.#reportUnreadableTimes = unreadableEventTimes(context)
  }

  /** Returns the bodies of the files; finalizes events that cannot be written. */
  encode(batch: Batch): FilePart[] {
    this.#parts = new Map()
    this.#part = undefined
    this.#unencoded = new Unencoded()
    const lines = batch instanceof ByteBatch ? batch : undefined
    const groups = lines === undefined ? undefined : this.#groupsOf(lines)
    if (lines !== undefined && groups !== undefined) this.#encodeLines(lines, groups)
    else this.#encodeEvents(batch.events)
    lines?.done()
    this.#unencoded.reject(batch, this.#context.events)
    this.#reportUnreadableTimes(this.#path.takeUnreadableTimes())
    const full: FilePart[] = []
    for (const part of this.#parts.values()) {
      if (part.count > 0) full.push(part)
      else this.free(part)
    }
    return full
  }

  /** Returns the body of a written part to the pool. */
  free(part: FilePart): void {
    this.#bodies.give(part.body)
  }

  #encodeEvents(events: readonly (LogEvent | MetricEvent)[]): void {
    for (let index = 0; index < events.length; index++) {
      const event = events[index] as LogEvent | MetricEvent
      const part = this.#partOf(event, this.#path.render(event), 1, event.size)
      if (part === undefined) continue
      const problem = this.#encoder.encode(event, part.body)
      if (problem !== undefined) this.#failed(event, problem)
    }
  }

  /** The path group of each event; undefined if unknown. */
  #groupsOf(batch: ByteBatch): Int32Array | undefined {
    const { likeness } = this.#path
    if (this.#lines === undefined || likeness === undefined) return undefined
    return batch.groups(likeness.fields, likeness.second)
  }

  #encodeLines(batch: ByteBatch, groups: Int32Array): void {
    const { count } = batch
    for (let from = 0, to = 0; from < count; from = to) {
      const group = groups[from] as number
      const event = batch.eventAt(from)
      const before = this.#path.unreadableTimes
      const path = this.#path.render(event)
      let bytes = batch.size(from)
      to = from + 1
      // Unreadable times are counted for each event.
      const isAlike = group >= 0 && this.#path.unreadableTimes === before
      while (isAlike && to < count && groups[to] === group) bytes += batch.size(to++)
      const part = this.#partOf(event, path, to - from, bytes)
      if (part !== undefined) this.#lines?.write(batch, from, to, part.body)
    }
  }

  /** Returns the part for the events and counts them; undefined if there is no file for them, which is recorded. */
  #partOf(event: LogEvent | MetricEvent, path: string | undefined, count: number, bytes: number): FilePart | undefined {
    if (path === undefined || path === '' || this.#leadsOut(path)) {
      this.#unencoded.rendering += count
      this.#unencoded.missing = this.#path.missing(event)
      this.#unencoded.bytes += bytes
      return undefined
    }
    let part = this.#part?.path === path ? this.#part : this.#parts.get(path)
    if (part === undefined) {
      const body = this.#parts.size < keptBodies ? this.#bodies.take() : new Body(smallBody)
      part = { path, body, count: 0, bytes: 0 }
      this.#parts.set(path, part)
    }
    part.count += count
    part.bytes += bytes
    this.#part = part
    return part
  }

  /** An event of the last part could not be encoded. */
  #failed(event: LogEvent | MetricEvent, problem: string): void {
    const part = this.#part as FilePart
    part.count--
    part.bytes -= event.size
    this.#unencoded.encoding++
    this.#unencoded.problem = problem
    this.#unencoded.bytes += event.size
  }

  /** True if event fields would lead to a folder above the one that the user configured. */
  #leadsOut(path: string): boolean {
    return !this.#path.isStatic && path.includes('..') && steps(path, '..') > steps(this.#path.source, '..')
  }
}

function steps(path: string, step: string): number {
  return path.split('/').filter((candidate) => candidate === step).length
}
