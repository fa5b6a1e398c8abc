import { expect, test } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import type { LogEvent } from '../event/log.ts'
import { MetricEvent, type MetricParts } from '../event/metric.ts'
import { Timestamp } from '../event/timestamp.ts'
import { writeJson } from '../formats/json.ts'
import { runTransform } from '../testing/harness.ts'

const at = new Timestamp(1_767_225_600_123, 0)
const converted = async (metric: MetricParts, options: object = {}) => {
  const sent = await runTransform('metric_to_log', options, [new MetricEvent(metric)])
  const [event] = sent.get('') ?? []
  return JSON.parse(writeJson((event as LogEvent).fields))
}

test.each([
  [
    { name: 'requests', kind: 'incremental', value: { type: 'counter', value: 2 }, timestamp: at },
    { name: 'requests', kind: 'incremental', timestamp: '2026-01-01T00:00:00.123Z', counter: { value: 2 } },
  ],
  [
    {
      name: 'load',
      namespace: 'node',
      kind: 'absolute',
      value: { type: 'gauge', value: 0.5 },
      timestamp: at,
      tags: new Map([['host', 'n1']]),
    },
    {
      name: 'load',
      namespace: 'node',
      kind: 'absolute',
      timestamp: '2026-01-01T00:00:00.123Z',
      tags: { host: 'n1' },
      gauge: { value: 0.5 },
    },
  ],
] as const)('%j becomes a log event', async (metric, expected) => {
  expect(await converted(metric as MetricParts)).toEqual(expected)
})

test('a tag can become the host, and tags can keep all their values', async () => {
  const tags = new Map<string, string | string[]>([
    ['vm', 'n1'],
    ['zone', ['a', 'b']],
  ])
  const metric = { name: 'm', kind: 'absolute', value: { type: 'gauge', value: 1 }, timestamp: at, tags } as MetricParts
  expect(await converted(metric, { host_tag: 'vm' })).toMatchObject({ host: 'n1', tags: { zone: 'b' } })
  expect(await converted(metric, { metric_tag_values: 'full' })).toMatchObject({
    tags: { vm: ['n1'], zone: ['a', 'b'] },
  })
})

const problems = (source: object, inputs: readonly string[], sink: object) => {
  const loaded = loadConfigObject({
    sources: { in: source },
    transforms: { logs: { type: 'metric_to_log', inputs: ['in'] } },
    sinks: { out: { ...sink, inputs } },
  })
  return loaded.ok ? [] : loaded.problems.map(({ message }) => message)
}
const metrics = { type: 'internal_metrics' }
const logs = { type: 'demo_logs', format: 'json' }
const logSink = { type: 'log_aggregator', endpoint: 'http://h', labels: { a: 'b' }, encoding: { codec: 'json' } }
const metricSink = { type: 'remote_write_metrics', endpoint: 'http://h/write' }

test.each([
  { source: metrics, sink: logSink, says: [] },
  { source: metrics, sink: metricSink, says: ['Data type mismatch between logs (Log) and out (Metric)'] },
  { source: logs, sink: logSink, says: ['Data type mismatch between in (Log) and logs (Metric)'] },
])('from $source.type to $sink.type: $says', ({ source, sink, says }) => {
  expect(problems(source, ['logs'], sink)).toEqual(says)
})

test('an unknown time zone is invalid', () => {
  const loaded = loadConfigObject({
    sources: { in: metrics },
    transforms: { logs: { type: 'metric_to_log', inputs: ['in'], timezone: 'Mars/Base' } },
    sinks: { out: { ...logSink, inputs: ['logs'] } },
  })
  expect(loaded.ok ? '' : loaded.problems[0]?.message).toContain('`Mars/Base` is not a time zone')
})
