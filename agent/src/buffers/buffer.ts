// What stands between the topology and a sink: batches wait here until the sink takes them.
// What was accepted is handed out or counted as discarded.

import type { Batch } from '../event/batch.ts'
import type { BufferOptions } from '../schema/groups.ts'
import type { Labels, Metrics, Series } from '../telemetry/metrics.ts'

export interface SinkBuffer {
  /**
   * Takes a batch over, with its share of the finalizer. What it returns, if anything, resolves when all of the batch is in:
   * until then the buffer is full and its writer shall wait.
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
  readonly limit: { readonly events: number } | { readonly bytes: number }
  /** Writes down what must survive and lets go of files. What is inside a memory buffer is lost. */
  close(): Promise<void>
}

/** What a buffer counts; all series are resolved once. */
export class BufferCounters {
  readonly #receivedEvents: Series
  readonly #receivedBytes: Series
  readonly #sentEvents: Series
  readonly #sentBytes: Series
  readonly #discardedEvents: Series
  readonly #discardedBytes: Series

  constructor(metrics: Metrics, component: Labels) {
    const labels = bufferLabels(component)
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
  if ('events' in limit) metrics.computed('buffer_max_event_size', labels, () => limit.events)
  else metrics.computed('buffer_max_byte_size', labels, () => limit.bytes)
}

/** What is known against a buffer's options before anything is built; undefined if they can be used. */
export function bufferProblem(options: BufferOptions): string | undefined {
  if (options.type !== 'disk') return undefined
  return '`buffer.type: disk` is not available in this version; use `memory`, or leave `buffer` out'
}
