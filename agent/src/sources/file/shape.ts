// Builds the event of one file's line.

import { LogEvent } from '../../event/log.ts'
import { setPath } from '../../event/path.ts'
import { logSize } from '../../event/size.ts'
import { Timestamp } from '../../event/timestamp.ts'
import type { Bytes, ValueObject } from '../../event/value.ts'
import type { LineShape } from '../../tailing/lines.ts'
import type { Slab } from '../../tailing/slab.ts'

export interface Layout {
  readonly messageKey: string
  readonly timestampKey: string
  readonly offsetPath: readonly (string | number)[] | undefined
  readonly decode: ((bytes: Buffer) => string) | undefined
}

export class FileShape implements LineShape {
  readonly overhead: number
  readonly #constants: ValueObject
  readonly #layout: Layout
  /** The fields have their default names: a literal then builds the event three times as fast. */
  readonly #usual: boolean

  constructor(constants: ValueObject, layout: Layout) {
    this.#constants = constants
    this.#layout = layout
    this.#usual =
      layout.offsetPath === undefined &&
      layout.messageKey === 'message' &&
      layout.timestampKey === 'timestamp' &&
      Object.keys(constants).sort().join() === 'file,host,source_type'
    this.overhead = logSize(this.make('', 0, new Timestamp(0, 0)).fields)
  }

  event(slab: Slab, line: number): LogEvent {
    return this.make(this.text(slab, line), slab.base + (slab.starts[line] as number), slab.time)
  }

  text(slab: Slab, line: number): string | Bytes {
    const start = slab.starts[line] as number
    const end = slab.ends[line] as number
    const { decode } = this.#layout
    return decode === undefined ? slab.text(start, end) : decode(slab.buffer.subarray(start, end))
  }

  make(message: string | Bytes, offset: number, timestamp: Timestamp): LogEvent {
    const constants = this.#constants
    if (this.#usual) {
      return new LogEvent({
        file: constants['file'],
        host: constants['host'],
        message,
        source_type: constants['source_type'],
        timestamp,
      })
    }
    const { messageKey, timestampKey, offsetPath } = this.#layout
    const fields: ValueObject = { ...constants, [messageKey]: message, [timestampKey]: timestamp }
    if (offsetPath !== undefined) setPath(fields, offsetPath, offset)
    return new LogEvent(fields)
  }
}
