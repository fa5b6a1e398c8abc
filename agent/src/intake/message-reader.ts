// Shared by sources of messages: decoding a message and passing its events on, part by part and no faster than the pipeline takes them.

import { compileDecoder, type Decoder, eventBatches } from '../codecs/decoding/decoder.ts'
import type { SourceContext } from '../component.ts'
import type { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField } from '../event/value.ts'
import type { DecodingOptions, FramingOptions } from '../schema/groups.ts'
import { instantOf } from '../time-field.ts'
import { untilAborted } from '../timing/wait.ts'
import { annotate, type Notes, reportUndecoded } from './annotate.ts'

export class MessageReader {
  readonly #decoder: Decoder
  readonly #notes: Notes
  readonly #context: SourceContext
  /** Metadata of the message that is read. */
  #time: Timestamp | undefined

  constructor(
    options: { readonly decoding: DecodingOptions; readonly framing: FramingOptions | undefined },
    notes: Notes,
    context: SourceContext,
  ) {
    this.#notes = notes
    this.#context = context
    const now = () => this.#time ?? Timestamp.now()
    this.#decoder = compileDecoder(options.decoding, options.framing, context.globals, { stream: false, now })
  }

  /**
   * Hands on the events of a message. Takes the finalizer's share, which is released when all of the message is passed on.
   * @param time when the message was sent; events without a time get it, and the lag is measured by it
   * @param values fields of the message, as the notes want them
   */
  async read(
    message: Buffer,
    finalizer: Finalizer,
    time: Timestamp | undefined,
    values?: readonly (string | number)[],
  ): Promise<void> {
    const { events, output, stopping } = this.#context
    const parts = this.#decoder.parts(message)[Symbol.iterator]()
    for (;;) {
      this.#time = time // another message may have been read meanwhile
      const { value: decoded, done } = parts.next()
      if (done === true) break
      reportUndecoded(decoded, events)
      if (decoded.events.length === 0) continue
      annotate(decoded.events, this.#notes, time, values)
      if (time !== undefined) this.#observeLag(decoded.events, time)
      finalizer.retain(1)
      for (const batch of eventBatches(decoded.events, finalizer)) {
        const full = output.send(batch)
        // Sent events already belong to the pipeline, whether it stops or not.
        if (full !== undefined) await untilAborted(full, stopping)
      }
    }
    finalizer.release(1, 'dropped')
  }

  #observeLag(decoded: readonly (LogEvent | MetricEvent)[], sent: Timestamp): void {
    const now = Date.now()
    const { timestampKey } = this.#context.globals.logSchema
    for (const event of decoded) {
      const own = event instanceof LogEvent ? getField(event.fields, timestampKey) : event.timestamp
      const time = instantOf(own) ?? sent
      this.#context.events.observe('source_lag_time_seconds', Math.max(0, now - time.ms) / 1000)
    }
  }
}

/** How many messages were passed on and not answered for. */
export class Outstanding {
  #count = 0
  #none: (() => void) | undefined

  add(): void {
    this.#count++
  }

  done(): void {
    this.#count--
    if (this.#count === 0) this.#none?.()
  }

  /** Resolves when there are none. */
  async none(): Promise<void> {
    if (this.#count === 0) return
    await new Promise<void>((resolve) => {
      this.#none = resolve
    })
  }
}
