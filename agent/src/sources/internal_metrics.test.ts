import { expect, test } from 'vitest'
import { Metrics } from '../telemetry/metrics.ts'
import { startSource } from '../testing/harness.ts'
import { collectMetrics } from './internal_metrics.ts'

test('counters, gauges and histograms become absolute metrics with their labels as tags', () => {
  const metrics = new Metrics()
  metrics.counter('component_sent_events_total', { component_id: 'out' }).add(3)
  metrics.gauge('uptime_seconds').set(7)
  metrics.histogram('http_client_rtt_seconds').observe(0.02)
  const events = collectMetrics(metrics, 'penstock', new Map([['host', 'h']]))
  const named = (name: string) => events.find((event) => event.name === name)
  expect(named('component_sent_events_total')).toMatchObject({
    namespace: 'penstock',
    kind: 'absolute',
    value: { type: 'counter', value: 3 },
    tags: new Map([
      ['host', 'h'],
      ['component_id', 'out'],
      ['component_name', 'out'],
    ]),
  })
  expect(named('uptime_seconds')).toMatchObject({ value: { type: 'gauge', value: 7 } })
  expect(named('http_client_rtt_seconds')?.value).toMatchObject({
    type: 'histogram',
    count: 1,
    sum: 0.02,
    buckets: expect.arrayContaining([{ upperLimit: 0.03125, count: 1 }]),
  })
})

test('without metrics to read, the source waits for its stop', async () => {
  await using source = await startSource('internal_metrics', { tags: { host_key: 'node' } })
  await source.stop()
  expect(source.sent).toEqual([])
})
