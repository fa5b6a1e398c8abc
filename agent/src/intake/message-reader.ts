// For sources of messages: decodes a message and sends its events, part by part and no faster than the pipeline accepts them.

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
  /** The time of the current message. */
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
   * Sends the events of a message. Takes over a share of the finalizer, and releases it when the whole message has been sent.
   * @param time when the message was sent, which is the time of events without one and the base for measuring the lag
   * @param values the message's values for the notes
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
      this.#time = time // another message may have been read in the meantime
      const { value: decoded, done } = parts.next()
      if (done === true) break
      reportUndecoded(decoded, events)
      if (decoded.events.length === 0) continue
      annotate(decoded.events, this.#notes, time, values)
      if (time !== undefined) this.#observeLag(decoded.events, time)
      finalizer.retain(1)
      for (const batch of eventBatches(decoded.events, finalizer)) {
        const full = output.send(batch)
        // Sent events already belong to the pipeline, so a stop need not wait.
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

/** Counts the messages that were sent to the pipeline but are not yet finalized. */
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

  /** Resolves when all messages are finalized. */
  async none(): Promise<void> {
    if (this.#count === 0) return
    await new Promise<void>((resolve) => {
      this.#none = resolve
    })
  }
}
