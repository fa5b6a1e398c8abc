// Writes byte lines into the bodies of streams, for sinks that do not need the positions of single events.

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

  /** @param failed called for an event that cannot be encoded */
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

  /** Undefined if the encoder does not write events as JSON lines with newline framing. */
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
