// A sink's buffer in memory, limited by the number of events. A batch larger than the free space enters in parts as space
// becomes free, so the limit holds for batches of any size.

import { ByteBatch } from '../bytes/byte-batch.ts'
import { type Batch, finalizeBatch } from '../event/batch.ts'
import type { Labels, Metrics } from '../telemetry/metrics.ts'
import { BufferCounters, type SinkBuffer } from './buffer.ts'

export interface MemoryBufferOptions {
  readonly maxEvents: number
  readonly whenFull: 'block' | 'drop_newest'
  /** Called with the number of events dropped because the buffer is full. */
  readonly onDrop?: (events: number) => void
}

interface Waiting {
  rest: Batch
  readonly admitted: () => void
}

export class MemoryBuffer implements SinkBuffer {
  readonly durable = false
  onReadable: (() => void) | undefined
  readonly limit: { readonly events: number }
  readonly #options: MemoryBufferOptions
  readonly #counters: BufferCounters
  #queue: (Batch | undefined)[] = []
  #head = 0
  readonly #waiting: Waiting[] = []
  #admitting = false
  #events = 0
  #bytes = 0

  constructor(options: MemoryBufferOptions, metrics: Metrics, component: Labels) {
    this.#options = options
    this.#counters = new BufferCounters(metrics, component)
    this.limit = { events: options.maxEvents }
  }

  get events(): number {
    return this.#events
  }

  get bytes(): number {
    return this.#bytes
  }

  get empty(): boolean {
    return this.#events === 0 && this.#waiting.length === 0
  }

  write(batch: Batch): Promise<void> | undefined {
    if (batch.count === 0) {
      finalizeBatch(batch, 'dropped')
      return undefined
    }
    // First come, first served.
    const rest = this.#waiting.length > 0 && this.#options.whenFull === 'block' ? batch : this.#admit(batch)
    if (rest === undefined) return undefined
    if (this.#options.whenFull === 'drop_newest') {
      this.#counters.discarded(rest.count, rest.bytes)
      this.#options.onDrop?.(rest.count)
      if (rest instanceof ByteBatch) rest.done()
      finalizeBatch(rest, 'dropped')
      return undefined
    }
    return new Promise((admitted) => this.#waiting.push({ rest, admitted }))
  }

  take(): Batch | undefined {
    const batch = this.#queue[this.#head]
    if (batch === undefined) return undefined
    this.#queue[this.#head++] = undefined
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0
      this.#head = 0
    } else if (this.#head > 1024) {
      this.#queue = this.#queue.slice(this.#head)
      this.#head = 0
    }
    this.#events -= batch.count
    this.#bytes -= batch.bytes
    this.#counters.sent(batch.count, batch.bytes)
    if (this.#waiting.length > 0) this.#admitWaiting()
    return batch
  }

  /** Admits as many events as fit; returns the rest. */
  #admit(batch: Batch): Batch | undefined {
    let rest = batch
    for (;;) {
      const room = this.#options.maxEvents - this.#events
      if (room <= 0) return rest
      if (rest.count <= room) {
        this.#enter(rest)
        return undefined
      }
      rest.finalizer.retain(1)
      const whole = rest
      const part = whole.slice(0, room)
      rest = whole.slice(room, whole.count)
      // Release the whole batch: if only its parts hold the lines, their memory can be reused.
      if (whole instanceof ByteBatch) whole.done()
      this.#enter(part)
      // The sink may have taken the part already, which frees space again.
    }
  }

  #enter(batch: Batch): void {
    this.#counters.received(batch.count, batch.bytes)
    this.#events += batch.count
    this.#bytes += batch.bytes
    this.#queue.push(batch)
    this.onReadable?.()
  }

  #admitWaiting(): void {
    // Admission calls the reader, which may take events, which would start admission again.
    if (this.#admitting) return
    this.#admitting = true
    for (;;) {
      const first = this.#waiting[0]
      if (first === undefined) break
      const rest = this.#admit(first.rest)
      if (rest !== undefined) {
        first.rest = rest
        break
      }
      this.#waiting.shift()
      first.admitted()
    }
    this.#admitting = false
  }

  async close(): Promise<void> {
    this.onReadable = undefined
    let batch = this.take()
    while (batch !== undefined) {
      finalizeBatch(batch, 'errored')
      batch = this.take()
    }
  }
}
