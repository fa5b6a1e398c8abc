// A sink that converts metric events to the form its destination accepts. It counts and rejects unsendable events before
// batching. If absolute values become increments, the first value of a series is only a baseline.

import type { Sink, SinkContext } from '../../component.ts'
import { metricBatch } from '../../event/batch.ts'
import type { MetricEvent } from '../../event/metric.ts'
import type { Normalizer } from '../../metrics/normalizer.ts'

export interface Normalisation {
  readonly normalizer: Normalizer
  /** Why an event cannot be sent, as a sentence fragment; undefined if it can. */
  readonly problem?: (event: MetricEvent) => string | undefined
  /** The events to send in place of an event. */
  readonly prepare?: (event: MetricEvent) => readonly MetricEvent[]
  /** Whether a normalised event contains nothing that the destination accepts. */
  readonly isEmpty?: (event: MetricEvent) => boolean
}

/** Why the first absolute value of a series is not sent. */
const baseline = 'The value is only the baseline for later values of its series.'
/** Why a metric of an unremembered series is not sent. */
const noRoom = 'Too many series are remembered, or the series has become too large.'
/** Why a metric without samples is not sent. */
const nothing = 'The metric has no samples.'

export function normalised(sink: Sink, context: SinkContext, how: Normalisation): Sink {
  const sorter = new Sorter(context, how)
  return {
    ...(sink.healthcheck === undefined
      ? {}
      : { healthcheck: (signal: AbortSignal) => sink.healthcheck?.(signal) as Promise<void> }),
    close: () => sink.close(),
    write(batch) {
      const { finalizer } = batch
      const { events, rejected } = sorter.sort(batch.events as MetricEvent[])
      if (rejected > 0) {
        if (events.length > 0) finalizer.retain(1)
        finalizer.release(1, 'rejected')
      }
      if (events.length > 0) return sink.write(metricBatch(events, finalizer))
      if (rejected === 0) finalizer.release(1, 'dropped')
      return undefined
    },
  }
}

/**
 * Separates the events to send from the others. Each other event is counted once: as unremembered, baseline, empty or refused, in
 * this order.
 */
class Sorter {
  readonly #context: SinkContext
  readonly #how: Normalisation
  #kept = 0
  #empty = 0
  #refused = 0
  #full = 0
  /** Parts of events whose series are not remembered. */
  #unremembered = 0
  /** Why the last refused event was refused. */
  #reason: string | undefined

  constructor(context: SinkContext, how: Normalisation) {
    this.#context = context
    this.#how = how
  }

  /** Returns the events to send, and the number of lost ones. */
  sort(events: readonly MetricEvent[]): { readonly events: MetricEvent[]; readonly rejected: number } {
    this.#kept = 0
    this.#empty = 0
    this.#refused = 0
    this.#full = 0
    this.#unremembered = 0
    const sent: MetricEvent[] = []
    for (const event of events) this.#take(event, sent)
    this.#report()
    return { events: sent, rejected: this.#refused + this.#full }
  }

  #take(event: MetricEvent, sent: MetricEvent[]): void {
    const { normalizer, problem, prepare, isEmpty } = this.#how
    const found = problem?.(event)
    if (found !== undefined) {
      this.#refused++
      this.#reason = found
      return
    }
    const before = sent.length
    let wasKept = false
    let wasEmpty = false
    let wasFull = false
    for (const part of prepare?.(event) ?? [event]) {
      const result = normalizer.normalize(part)
      if (result === 'kept') wasKept = true
      else if (result === 'refused') continue
      else if (result === 'full') {
        wasFull = true
        this.#unremembered++
      } else if (isEmpty?.(result) === true) wasEmpty = true
      else sent.push(result)
    }
    if (sent.length > before) return
    if (wasFull) this.#full++
    else if (wasKept) this.#kept++
    else if (wasEmpty) this.#empty++
    else {
      this.#refused++
      this.#reason = `the destination accepts no ${event.value.type} metrics of this kind`
    }
  }

  #report(): void {
    const { events, logger } = this.#context
    if (this.#kept > 0) events.discarded(this.#kept, true, baseline)
    if (this.#empty > 0) events.discarded(this.#empty, true, nothing)
    const forgotten = this.#how.normalizer.takeForgotten()
    if (forgotten > 0) {
      logger.warn(
        { series: forgotten },
        'Series without values for an hour were forgotten to make room for others; they start again.',
      )
    }
    if (this.#unremembered > 0) {
      events.error({
        type: 'encoder_failed',
        stage: 'processing',
        code: 'too_many_series',
        message:
          'Too many series are remembered, or one has become too large; discarding metrics of new series and of that one.',
        count: this.#unremembered,
      })
      events.discarded(this.#full, false, noRoom)
    }
    if (this.#refused > 0) {
      events.error({
        type: 'encoder_failed',
        stage: 'processing',
        message: 'Could not encode metrics; they are discarded.',
        fields: { problem: this.#reason },
        count: this.#refused,
        level: 'warn',
      })
      events.discarded(this.#refused, false, 'The metric could not be encoded.')
    }
  }
}
