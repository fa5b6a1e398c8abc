// The accounts of a disk buffer and its metrics. Every received event leaves them as sent or as lost.

import type { Logger } from '../../telemetry/logger.ts'
import type { Labels, Metrics } from '../../telemetry/metrics.ts'
import type { RepetitionLimit } from '../../telemetry/repetition-limit.ts'
import { BufferCounters } from '../buffer.ts'
import type { RecordState } from './record-state.ts'

export interface AccountingContext {
  readonly logger: Logger
  readonly limit: RepetitionLimit
  readonly metrics: Metrics
  readonly component: Labels
}

export class Accounting {
  /** Number of events in the buffer, and bytes of their records in files. */
  events = 0
  bytes = 0
  readonly #counters: BufferCounters
  readonly #logger: Logger
  readonly #limit: RepetitionLimit

  constructor({ metrics, component, logger, limit }: AccountingContext) {
    this.#counters = new BufferCounters(metrics, component)
    this.#logger = logger
    this.#limit = limit
  }

  received(events: number, eventBytes: number): void {
    this.#counters.received(events, eventBytes)
    this.events += events
  }

  /** Events discarded for lack of space. */
  discarded(events: number, eventBytes: number): void {
    this.#counters.discarded(events, eventBytes)
  }

  /** A record has left the buffer. */
  left(state: RecordState): void {
    this.events -= state.events
    this.bytes -= state.diskBytes
    this.#counters.sent(state.events, state.eventBytes)
  }

  /** A record larger than a segment is not stored; the sink may still get its events from memory. */
  passed(state: RecordState, toSink: boolean): void {
    this.events -= state.events
    if (toSink) this.#counters.sent(state.events, state.eventBytes)
    else this.#counters.lost(state.events)
  }

  /** Events not contained in `events` are lost. */
  lost(events: number): void {
    this.#counters.lost(events)
  }

  /** Events found missing in all files. */
  missing(events: number, path: string): void {
    this.events -= events
    this.#counters.lost(events)
    this.#logger.error({ events, path }, 'Events of the disk buffer are lost: their records are damaged or missing.')
  }

  writerFailed(error: unknown, message: string, fields: object = {}): void {
    this.error('writer_failed', codeOf(error), { error, ...fields }, message)
  }

  error(type: 'reader_failed' | 'writer_failed', code: string, fields: object, message: string): void {
    this.#counters.error(type, code)
    this.#limit.log(this.#logger, 'error', { error_type: type, error_code: code, ...fields }, message)
  }
}

/** The code of a file system error. */
export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'UNKNOWN'
}
