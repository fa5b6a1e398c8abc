// Measures the delay of the operator's event loop as a metric.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'

/** Delay of the event loop; work that should be in a worker thread shows up here. */
export function eventLoopDelay(metrics: Registry) {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  new Gauge({
    name: 'penstock_event_loop_delay_p99_seconds',
    help: '99th percentile of the event loop delay since the last scrape.',
    registers: [metrics],
    collect() {
      this.set(Number.isFinite(delay.percentile(99)) ? delay.percentile(99) / 1e9 : 0)
      delay.reset()
    },
  })
  return delay
}
