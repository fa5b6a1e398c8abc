// The writer to which a batch of lines writes its events.

import type { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import type { FieldSelection } from './form.ts'

/** Receives written events. */
export interface ByteTarget {
  readonly body: Body
  /** Bytes written before each event that belong to it, at most `maxAffix`. */
  readonly prefix: Uint8Array | undefined
  /** A byte written after each event that belongs to it; 0: none. */
  readonly suffix: number
  /** The fields written for byte lines. */
  readonly fields: FieldSelection
  /** Called before bytes are written. */
  begin(): void
  /**
   * Events were written from this offset of the body on: each ends at its entry in `ends` minus `shift`, followed by its
   * suffix.
   */
  written(start: number, ends: Int32Array, count: number, shift: number): void
  /** Writes an object event. */
  object(event: LogEvent): void
}

/** Entries to be written: lines of a batch in any order, and their times. */
export interface EntryRun {
  readonly count: number
  readonly lines: Int32Array
  readonly ms: Float64Array
  readonly ns: Int32Array
}
