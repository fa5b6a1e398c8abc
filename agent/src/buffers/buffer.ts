// The buffer between the topology and a sink: batches wait here until the sink takes them.
// Every accepted event is handed out or counted as discarded.

import type { Batch } from '../event/batch.ts'
import type { ErrorType } from '../telemetry/component-events.ts'
import type { Labels, Metrics, Series } from '../telemetry/metrics.ts'

export interface SinkBuffer {
  /** Events inside when the agent stops are still there when it starts. */
  readonly durable: boolean
  /**
   * Takes a batch over, with its share of the finalizer. A returned promise resolves when all of the batch is in:
   * until then the buffer is full and its writer must wait.
   */
  write(batch: Batch): Promise<void> | undefined
  /** The next batch, or a part of one, now the taker's; undefined if there is none at the moment. */
  take(): Batch | undefined
  /** Called when there may be something to take. May be called at any time, also from inside `write`. */
  onReadable: (() => void) | undefined
  /** True if nothing is inside and nothing waits to come in. */
  readonly empty: boolean
  /** Events and bytes inside. */
  readonly events: number
  readonly bytes: number
  /** The limit, in the unit in which the buffer counts. */
  readonly limit: { readonly events?: number; readonly bytes?: number }
  /** Sets other limits for later events; only durable buffers support it. */
  reconfigure?(options: DiskBufferOptions): void
  /** Writes the events that must survive, and closes files. Events in a memory buffer are lost. */
  close(): Promise<void>
  /** Closes, and takes away the files if nothing is in them: for a buffer whose sink is gone for good. */
  removeIfEmpty?(): Promise<void>
}

export interface DiskBufferOptions {
  readonly maxSize: number
  readonly whenFull: 'block' | 'drop_newest'
}

/** The counters of a buffer; all series are resolved once. */
export class BufferCounters {
  readonly #receivedEvents: Series
  readonly #receivedBytes: Series
  readonly #sentEvents: Series
  readonly #sentBytes: Series
  readonly #discardedEvents: Series
  readonly #discardedBytes: Series
  readonly #metrics: Metrics
  readonly #labels: Labels

  constructor(metrics: Metrics, component: Labels) {
    const labels = bufferLabels(component)
    this.#metrics = metrics
    this.#labels = labels
    this.#receivedEvents = metrics.counter('buffer_received_events_total', labels)
    this.#receivedBytes = metrics.counter('buffer_received_event_bytes_total', labels)
    this.#sentEvents = metrics.counter('buffer_sent_events_total', labels)
    this.#sentBytes = metrics.counter('buffer_sent_event_bytes_total', labels)
    const intentional = { ...labels, intentional: 'true' }
    this.#discardedEvents = metrics.counter('buffer_discarded_events_total', intentional)
    this.#discardedBytes = metrics.counter('buffer_discarded_event_bytes_total', intentional)
  }

  received(events: number, bytes: number): void {
    this.#receivedEvents.add(events)
    this.#receivedBytes.add(bytes)
  }

  sent(events: number, bytes: number): void {
    this.#sentEvents.add(events)
    this.#sentBytes.add(bytes)
  }

  discarded(events: number, bytes: number): void {
    this.#discardedEvents.add(events)
    this.#discardedBytes.add(bytes)
  }

  /** Events that were taken in and cannot be handed out any more. */
  lost(events: number): void {
    if (events > 0) {
      this.#metrics.counter('buffer_discarded_events_total', { ...this.#labels, intentional: 'false' }).add(events)
    }
  }

  error(type: ErrorType, code: string): void {
    const labels = { ...this.#labels, error_type: type, error_code: code, stage: 'processing' }
    this.#metrics.counter('buffer_errors_total', labels).add(1)
  }
}

function bufferLabels(component: Labels): Labels {
  return { ...component, buffer_id: component['component_id'] ?? '', stage: '0' }
}

/** Shows the state of a buffer in the metrics, in place of another buffer of the same component. */
export function showBuffer(buffer: SinkBuffer, metrics: Metrics, component: Labels): void {
  const labels = bufferLabels(component)
  metrics.computed('buffer_events', labels, () => buffer.events)
  metrics.computed('buffer_byte_size', labels, () => buffer.bytes)
  const { limit } = buffer
  if (limit.events !== undefined) metrics.computed('buffer_max_event_size', labels, () => buffer.limit.events ?? 0)
  else metrics.computed('buffer_max_byte_size', labels, () => buffer.limit.bytes ?? 0)
}
