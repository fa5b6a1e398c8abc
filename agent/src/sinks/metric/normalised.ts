// A sink that takes metric events as its destination wants them: what cannot be sent is counted and rejected before it is
// batched, and of an absolute value that becomes an increment the first is only remembered.

import type { Sink, SinkContext } from '../../component.ts'
import { metricBatch } from '../../event/batch.ts'
import type { MetricEvent } from '../../event/metric.ts'
import type { Normalizer } from '../../metrics/normalizer.ts'

export interface Normalisation {
  readonly normalizer: Normalizer
  /** Why an event cannot be sent, as part of a sentence; undefined if it can. */
  readonly problem?: (event: MetricEvent) => string | undefined
  /** The events to send in place of one. */
  readonly prepare?: (event: MetricEvent) => readonly MetricEvent[]
  /** Whether a normalised event says nothing that the destination takes. */
  readonly isEmpty?: (event: MetricEvent) => boolean
}

/** Why the first absolute value of a series does not go on. */
const baseline = 'The value is only what later values of its series are compared with.'
/** Why a metric of a series that is not remembered does not go on. */
const noRoom = 'Too many series are remembered to take in another, or the series has become too large.'
/** Why a metric without samples does not go on. */
const nothing = 'The metric has no samples.'

export function normalised(sink: Sink, context: SinkContext, how: Normalisation): Sink {
  const { normalizer, problem, prepare, isEmpty } = how
  return {
    ...(sink.healthcheck === undefined
      ? {}
      : { healthcheck: (signal: AbortSignal) => sink.healthcheck?.(signal) as Promise<void> }),
    close: () => sink.close(),
    write(batch) {
      const { finalizer } = batch
      const events: MetricEvent[] = []
      let kept = 0
      let empty = 0
      let refused = 0
      let full = 0
      let unremembered = 0
      let reason: string | undefined
      for (const event of batch.events as MetricEvent[]) {
        const found = problem?.(event)
        if (found !== undefined) {
          refused++
          reason = found
          continue
        }
        const before = events.length
        let wasKept = false
        let wasEmpty = false
        let wasFull = false
        for (const part of prepare?.(event) ?? [event]) {
          const result = normalizer.normalize(part)
          if (result === 'kept') wasKept = true
          else if (result === 'refused') continue
          else if (result === 'full') {
            wasFull = true
            unremembered++
          } else if (isEmpty?.(result) === true) wasEmpty = true
          else events.push(result)
        }
        if (events.length > before) continue
        if (wasFull) {
          full++
        } else if (wasKept) {
          kept++
        } else if (wasEmpty) {
          empty++
        } else {
          refused++
          reason = `the destination takes no ${event.value.type} metrics of this kind`
        }
      }
      if (kept > 0) context.events.discarded(kept, true, baseline)
      if (empty > 0) context.events.discarded(empty, true, nothing)
      const forgotten = normalizer.takeForgotten()
      if (forgotten > 0) {
        context.logger.warn(
          { series: forgotten },
          'Series that were silent for an hour made room for others; they begin anew.',
        )
      }
      if (unremembered > 0) {
        context.events.error({
          type: 'encoder_failed',
          stage: 'processing',
          code: 'too_many_series',
          message:
            'Too many series are remembered, or one has become too large; metrics of further ones, and of it, are discarded.',
          count: unremembered,
        })
        context.events.discarded(full, false, noRoom)
      }
      if (refused > 0) {
        context.events.error({
          type: 'encoder_failed',
          stage: 'processing',
          message: 'Metrics could not be encoded; they are discarded.',
          fields: { problem: reason },
          count: refused,
          level: 'warn',
        })
        context.events.discarded(refused, false, 'The metric could not be encoded.')
      }
      if (refused + full > 0) {
        if (events.length > 0) finalizer.retain(1)
        finalizer.release(1, 'rejected')
      }
      if (events.length > 0) return sink.write(metricBatch(events, finalizer))
      if (refused + full === 0) finalizer.release(1, 'dropped')
      return undefined
    },
  }
}
