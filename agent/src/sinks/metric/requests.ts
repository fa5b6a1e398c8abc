// Requests of metric events: a body says what becomes of all its events together, so it is written when the request is full.
// Until the request ends it keeps its events: a part of it is written anew.

import type { Body } from '../../event/body.ts'
import type { MetricEvent } from '../../event/metric.ts'
import type { HttpSinkSpec } from '../../http/sink.ts'

/** @param write writes a whole body for events, in their order */
export function metricRequests(
  write: (events: readonly MetricEvent[], body: Body, key: string) => void,
): Pick<HttpSinkSpec, 'encode' | 'assemble'> & { readonly finish: NonNullable<HttpSinkSpec['finish']> } {
  return {
    encode(events, from, to, open) {
      open.state ??= []
      const kept = open.state as MetricEvent[]
      for (let index = from; index < to; index++) {
        kept.push(events[index] as MetricEvent)
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
