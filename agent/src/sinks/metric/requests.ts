// Requests of metric events. The body depends on all events of the request, so it is written when the request is full. A request
// keeps its events until it ends, because parts of it may be written again.

import type { Body } from '../../event/body.ts'
import type { MetricEvent } from '../../event/metric.ts'
import { identitySize } from '../../event/size.ts'
import type { HttpSinkSpec } from '../../http/sink.ts'

/** Estimates a body: its fixed size, and how often it repeats parts of its events. */
export interface MetricForm {
  /** Number of series or lines written for an event, each with name and tags; one if not given. */
  readonly seriesOf?: (event: MetricEvent) => number
  /** Option texts repeated in each series. */
  readonly texts?: readonly (string | undefined)[]
}

/**
 * The batcher ends a request by its written and pending bytes; here all bytes are pending. This estimates them like the batcher,
 * at two bytes per character.
 * @param write writes the whole body for the events, in order
 */
export function metricRequests(
  write: (events: readonly MetricEvent[], body: Body, key: string) => void,
  { seriesOf, texts = [] }: MetricForm = {},
): Pick<HttpSinkSpec, 'encode' | 'assemble'> & { readonly finish: NonNullable<HttpSinkSpec['finish']> } {
  const around = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)
  return {
    encode(events, from, to, open) {
      open.state ??= []
      const kept = open.state as MetricEvent[]
      for (let index = from; index < to; index++) {
        const event = events[index] as MetricEvent
        kept.push(event)
        open.bytesToCome += event.size + 2 * (seriesOf?.(event) ?? 1) * (identitySize(event) + around)
        open.mark(0)
      }
    },
    finish(open) {
      write(open.state as MetricEvent[], open.body, open.key)
      return open
    },
    assemble({ state }, positions, into) {
      const all = state as MetricEvent[]
      const kept: MetricEvent[] = []
      for (let index = 0; index < positions.length; index++) {
        kept.push(all[positions[index] as number] as MetricEvent)
        into.mark(0)
      }
      into.state = kept
      write(kept, into.body, into.key)
    },
  }
}
