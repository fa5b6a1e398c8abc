// The agent's own metrics as events, so that they can be delivered like all others.

import { hostname } from 'node:os'
import { pause } from '../clock.ts'
import { defineSource } from '../component.ts'
import { metricBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { MetricEvent, type MetricTags, type MetricValue } from '../event/metric.ts'
import { Timestamp } from '../event/timestamp.ts'
import { group, optional, seconds, text } from '../schema/options.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Nothing is received over a network, so the bytes received are those of the events. */
const protocol = { protocol: 'internal' }

export const internalMetrics = defineSource({
  type: 'internal_metrics',
  summary: "Emits the agent's own metrics.",
  outputs: ['metric'],
  reaches: 'agent',
  options: {
    scrape_interval_secs: seconds('Seconds between two collections.', { default: 1, exclusiveMinimum: 0 }),
    namespace: text('Namespace of the metrics. Empty: none.', { default: 'penstock' }),
    tags: group(
      {
        host_key: optional(text('Tag for the name of the host. Empty: none. If not given, `log_schema.host_key`.')),
        pid_key: optional(text('Tag for the process id. None if not given.')),
      },
      'Tags that identify the agent.',
    ),
  },

  build(options, context) {
    const constant = new Map<string, string>()
    const hostKey = options.tags.host_key ?? context.globals.logSchema.hostKey
    if (hostKey !== '') constant.set(hostKey, hostname())
    if (options.tags.pid_key !== undefined && options.tags.pid_key !== '') {
      constant.set(options.tags.pid_key, String(process.pid))
    }
    const namespace = options.namespace === '' ? undefined : options.namespace

    return {
      async run() {
        const { metrics, stopping } = context
        while (!stopping.aborted) {
          const events = metrics === undefined ? [] : collectMetrics(metrics, namespace, constant)
          if (events.length > 0) {
            const batch = metricBatch(events, new Finalizer())
            context.events.receivedBytes(batch.bytes, protocol)
            await context.output.send(batch)
          }
          // The stop ends the loop.
          await pause(options.scrape_interval_secs * 1000, stopping)
        }
      },
    }
  },
})

/** Returns all current metrics as absolute values. */
export function collectMetrics(
  metrics: Metrics,
  namespace: string | undefined,
  constant: ReadonlyMap<string, string>,
): MetricEvent[] {
  const events: MetricEvent[] = []
  const timestamp = Timestamp.now()
  for (const { name, type, samples } of metrics.snapshot()) {
    for (const sample of samples) {
      const tags: MetricTags = new Map(constant)
      for (const label in sample.labels) tags.set(label, sample.labels[label] as string)
      const id = sample.labels['component_id']
      // The old name of the tag, as on `/metrics`.
      if (id !== undefined) tags.set('component_name', id)
      let value: MetricValue
      if ('histogram' in sample) value = { type: 'histogram', ...sample.histogram }
      else value = { type: type === 'counter' ? 'counter' : 'gauge', value: sample.value }
      events.push(new MetricEvent({ name, namespace, kind: 'absolute', value, timestamp, tags }))
    }
  }
  return events
}
