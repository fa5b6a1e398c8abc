// The buffer between the topology and a sink: batches wait here until the sink takes them. The buffer passes every
// accepted event on, or counts it as discarded.

import type { Batch } from '../event/batch.ts'
import type { ErrorType } from '../telemetry/component-events.ts'
import type { Labels, Metrics, Series } from '../telemetry/metrics.ts'

export interface SinkBuffer {
  /** Whether buffered events survive a restart of the agent. */
  readonly durable: boolean
  /**
   * Takes a batch over, with its share of the finalizer. A returned promise resolves when the whole batch is in; until
   * then the buffer is full and the writer must wait.
   */
  write(batch: Batch): Promise<void> | undefined
  /**
   * Returns the next batch, or a part of one, which then belongs to the caller; undefined if there is none at the
   * moment.
   */
  take(): Batch | undefined
  /** Called when a batch may be available. The call may come at any time, even from inside `write`. */
  onReadable: (() => void) | undefined
  /** True if the buffer holds no events and no writer waits. */
  readonly empty: boolean
  /** Number and bytes of the buffered events. */
  readonly events: number
  readonly bytes: number
  /** The limit, in the unit that the buffer counts. */
  readonly limit: { readonly events?: number; readonly bytes?: number }
  /** Changes the limits for later events; only durable buffers support it. */
  reconfigure?(options: DiskBufferOptions): void
  /** Writes the events that must survive, and closes files. Events in a memory buffer are lost. */
  close(): Promise<void>
  /** Closes, and removes the files if they hold no events: for a buffer whose sink was removed permanently. */
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

  /** Events that were accepted but can no longer be passed on. */
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

/** Exposes the state of a buffer in the metrics, replacing an earlier buffer of the same component. */
export function showBuffer(buffer: SinkBuffer, metrics: Metrics, component: Labels): void {
  const labels = bufferLabels(component)
  metrics.computed('buffer_events', labels, () => buffer.events)
  metrics.computed('buffer_byte_size', labels, () => buffer.bytes)
  const { limit } = buffer
  if (limit.events !== undefined) metrics.computed('buffer_max_event_size', labels, () => buffer.limit.events ?? 0)
  else metrics.computed('buffer_max_byte_size', labels, () => buffer.limit.bytes ?? 0)
}
