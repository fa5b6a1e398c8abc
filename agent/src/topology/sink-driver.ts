// Moves batches from a sink's buffer into the sink, one at a time, as fast as the sink accepts them. While the sink waits, its
// buffer fills, which does not affect other sinks.

import type { SinkBuffer } from '../buffers/buffer.ts'
import type { Sink } from '../component.ts'
import { type Batch, finalizeBatch } from '../event/batch.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import type { Stopwatch, UtilizationMeter } from './utilization.ts'

export class SinkDriver {
  readonly #sink: Sink
  readonly #buffer: SinkBuffer
  readonly #events: ComponentEvents
  readonly #meter: UtilizationMeter
  readonly #stopwatch: Stopwatch
  #pumping = false
  #released = false
  #ownsBuffer = true
  #closesBuffer = false
  /** The promise that the sink waits for. */
  #wait: Promise<void> | undefined
  #drained: (() => void) | undefined

  constructor(sink: Sink, buffer: SinkBuffer, events: ComponentEvents, meter: UtilizationMeter, stopwatch: Stopwatch) {
    this.#sink = sink
    this.#buffer = buffer
    this.#events = events
    this.#meter = meter
    this.#stopwatch = stopwatch
  }

  start(): void {
    this.#buffer.onReadable = () => this.#pump()
    this.#pump()
  }

  #pump(): void {
    if (this.#pumping || this.#wait !== undefined || this.#released) return
    this.#pumping = true
    while (this.#wait === undefined && !this.#released) {
      const batch = this.#buffer.take()
      if (batch === undefined) break
      this.#write(batch)
    }
    this.#pumping = false
    if (this.#wait === undefined && this.#buffer.empty) this.#drained?.()
  }

  #write(batch: Batch): void {
    this.#events.received(batch.count, batch.bytes)
    const outer = this.#stopwatch.enter(this.#meter)
    let wait: Promise<void> | undefined
    try {
      wait = this.#sink.write(batch)
    } catch (error) {
      this.#failed(error)
      this.#events.discarded(batch.count, false, 'The sink failed.')
      finalizeBatch(batch, 'errored')
    }
    this.#stopwatch.leave(outer)
    if (wait === undefined) return
    this.#meter.waitingSince = performance.now()
    this.#wait = wait.then(this.#go, (error: unknown) => {
      this.#failed(error)
      this.#go()
    })
  }

  readonly #go = (): void => {
    this.#wait = undefined
    if (this.#meter.waitingSince !== undefined) {
      this.#meter.busyMs += performance.now() - this.#meter.waitingSince
      this.#meter.waitingSince = undefined
    }
    this.#pump()
  }

  #failed(error: unknown): void {
    this.#events.error({
      type: 'writer_failed',
      stage: 'sending',
      message: 'The sink failed; continuing with the next events.',
      fields: { error },
    })
  }

  /** False if another driver has taken over the buffer. */
  get ownsBuffer(): boolean {
    return this.#ownsBuffer
  }

  /** Whether the buffer is closing; it must not be reopened until then. */
  get closesBuffer(): boolean {
    return this.#closesBuffer
  }

  /** Stops taking events, because another driver now owns the buffer. */
  release(): void {
    this.#ownsBuffer = false
    this.keep()
  }

  /** Stops taking events, which stay in the buffer. */
  keep(): void {
    this.#released = true
    this.#drained?.()
  }

  /**
   * Resolves when the sink has taken all buffered events, the destination has answered for them, and the buffer is closed unless
   * it has another owner.
   */
  async finish(): Promise<void> {
    if (!this.#released && !(this.#wait === undefined && this.#buffer.empty)) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    await this.#wait
    await this.#sink.close()
    if (!this.#ownsBuffer) return
    this.#closesBuffer = true
    await this.#buffer.close()
  }
}
