// How late the event loop of the operator comes to its next turn, as a metric.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'

/** Delay of the event loop: work that belongs into a thread shows here. */
export function eventLoopDelay(metrics: Registry) {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  new Gauge({
    name: 'penstock_event_loop_delay_p99_seconds',
    help: 'Delay of the event loop that 99 of 100 turns stay below, since the last look.',
    registers: [metrics],
    collect() {
      this.set(Number.isFinite(delay.percentile(99)) ? delay.percentile(99) / 1e9 : 0)
      delay.reset()
    },
  })
  return delay
}
