// Writes events that are lines still into the bodies of streams, whose sinks need no place of a single event.

import type { ByteBatch } from '../../bytes/byte-batch.ts'
import type { ByteTarget } from '../../bytes/byte-target.ts'
import type { FieldSelection } from '../../bytes/form.ts'
import type { StreamEncoder } from '../../codecs/encoding/encoder.ts'
import { Body } from '../../event/body.ts'
import type { LogEvent } from '../../event/log.ts'

export class LineStream implements ByteTarget {
  readonly prefix = undefined
  readonly suffix: number
  readonly fields: FieldSelection
  body = noBody
  readonly #encoder: StreamEncoder
  readonly #failed: (event: LogEvent, problem: string) => void

  /** @param failed records an event that cannot be encoded */
  private constructor(
    encoder: StreamEncoder,
    fields: FieldSelection,
    delimiter: Buffer,
    failed: (event: LogEvent, problem: string) => void,
  ) {
    this.#encoder = encoder
    this.fields = fields
    this.suffix = delimiter[0] ?? 0
    this.#failed = failed
  }

  /** Undefined if events are not JSON on one line there, or are in other frames than lines do. */
  static of(encoder: StreamEncoder, failed: (event: LogEvent, problem: string) => void): LineStream | undefined {
    const { framing, lineFields } = encoder
    const { delimiter } = framing
    const isByte = delimiter !== undefined && delimiter.length < 2 && delimiter[0] !== 0
    return lineFields !== undefined && isByte ? new LineStream(encoder, lineFields, delimiter, failed) : undefined
  }

  /** Appends events `[from, to)` of a batch to a body. */
  write(batch: ByteBatch, from: number, to: number, body: Body): void {
    this.body = body
    batch.write(from, to, this)
    this.body = noBody
  }

  begin(): void {}

  written(): void {}

  object(event: LogEvent): void {
    const problem = this.#encoder.encode(event, this.body)
    if (problem !== undefined) this.#failed(event, problem)
  }
}

const noBody = new Body(0)
