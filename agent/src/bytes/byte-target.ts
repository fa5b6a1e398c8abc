// The target of a batch of lines that writes its events.

import type { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import type { FieldSelection } from './form.ts'

/** Where events are written. */
export interface ByteTarget {
  readonly body: Body
  /** Bytes that are written before each event, and belong to it. They are no more than the kernel's `maxAffix`. */
  readonly prefix: Uint8Array | undefined
  /** A byte that is written behind each event, and belongs to it; 0: none. */
  readonly suffix: number
  /** The fields that are written of events that are lines still. */
  readonly fields: FieldSelection
  /** Called before bytes are written. */
  begin(): void
  /** Events were written from this place of the body on: each ends where `ends` says, less `shift`, and then comes its byte. */
  written(start: number, ends: Int32Array, count: number, shift: number): void
  /** Writes an event that is an object. */
  object(event: LogEvent): void
}

/** Entries that are to be written: lines of a batch in any order, and their times. */
export interface EntryRun {
  readonly count: number
  readonly lines: Int32Array
  readonly ms: Float64Array
  readonly ns: Int32Array
}
