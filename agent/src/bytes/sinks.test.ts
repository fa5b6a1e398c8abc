// Sinks send the same requests and report the same counts whether events arrive as lines or as objects.

import { afterEach, expect, test, vi } from 'vitest'
import type { LogBatch } from '../event/batch.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { fakeDestination } from '../testing/destination.ts'
import { startSink } from '../testing/harness.ts'
import { bothLanes, sinkChains, timeChains } from '../testing/lane-sinks.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'
import { type LaneSink, logAggregator, searchEngine, sentBy } from '../testing/sent-by-sinks.ts'

const sinks: readonly LaneSink[] = [
  ...[
    {},
    { bulk: { index: 'i-{{ a }}' } },
    { bulk: { index: '{{ stream }}-{{ s }}', template_fallback_index: 'others' } },
    { bulk: { index: '{{ stream }}-%H.%M.%S' } },
    { bulk: { index: '%S%.3f' } },
    { bulk: { index: '{{ orchestrator.pod_name }}-{{ timestamp }}-%S' } },
    { bulk: { index: 'x', action: '{{ action }}' } },
    { bulk: { index: '{{ s }}' }, encoding: { only_fields: ['a', 'n', 'orchestrator'] } },
    { bulk: { index: '{{ a }}' }, encoding: { timestamp_format: 'unix_ms' } },
    // These accept no lines, but may get some from a disk buffer after a reload.
    { id_key: 's' },
    { mode: 'data_stream', data_stream: { namespace: '{{ a }}' } },
    { bulk: { index: `${'long'.repeat(5000)}-{{ a }}` } },
  ].map(searchEngine),
  ...[
    { labels: { env: 'prod' }, out_of_order_action: 'accept' },
    { labels: { env: '{{ a }}' } },
    { labels: { a: '{{ a }}', stream: '{{ stream }}', pod: '{{ orchestrator.pod_name }}' }, remove_label_fields: true },
    { labels: { '{{ a }}': '{{ s }}', 'pod_*': '{{ orchestrator.pod_labels }}' }, remove_timestamp: false },
    { labels: { second: '%H:%M:%S', s: '{{ s }}' }, out_of_order_action: 'rewrite_timestamp' },
    { labels: { message: '{{ message }}' }, out_of_order_action: 'accept' },
    { labels: { env: 'x', a: '{{ o.n }}' }, structured_metadata: { s: '{{ s }}' } },
    { labels: { env: 'x' }, tenant_id: '{{ stream }}' },
    { labels: { env: 'x' }, compression: 'snappy' },
    { labels: { a: '{{ a }}' }, encoding: { codec: 'json', except_fields: ['message', 'orchestrator', 's'] } },
    {
      labels: { a: '{{ a }}' },
      remove_label_fields: true,
      remove_timestamp: false,
      encoding: { codec: 'json', only_fields: ['a', 's', 'timestamp'], timestamp_format: 'unix_ns' },
    },
    {
      labels: { env: 'x' },
      structured_metadata: { s: '{{ s }}' },
      remove_timestamp: false,
      encoding: { codec: 'json', except_fields: ['file'], timestamp_format: 'unix_float' },
    },
    {
      labels: { env: 'x' },
      compression: 'snappy',
      remove_timestamp: false,
      encoding: { codec: 'json', except_fields: ['n'], timestamp_format: 'unix' },
    },
  ].map(logAggregator),
]

afterEach(() => {
  vi.useRealTimers()
})

test.each(sinks.map((sink) => ({ ...sink, name: `${sink.type} ${JSON.stringify(sink.options).slice(0, 160)}` })))(
  'sinks send the same for lines and for objects: $name',
  { timeout: 120_000 },
  async (sink) => {
    // Events without a time get the current one.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-23T10:11:15Z') })
    const seed = (Math.random() * 2 ** 32) >>> 0
    const random = new Random(seed)
    for (const chain of [...sinkChains, ...timeChains]) {
      const lanes = await bothLanes(chain, random)
      const bytes = await sentBy(sink, lanes.bytes)
      const objects = await sentBy(sink, lanes.objects)
      expect(bytes, `Seed ${seed}, ${JSON.stringify(chain)}`).toEqual(objects)
    }
  },
)

test('labels of repeated lines use the current time of their own batch', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const { options } = logAggregator({ labels: { at: '%H:%M:%S', a: '{{ a }}' }, out_of_order_action: 'accept' })
  const transforms = await transformsOf(['. = parse_json!(.message)'], true)
  const pod = new BytePod('pod')
  const line = Buffer.from('2026-11-23T10:11:12.5Z stdout F {"a":"x"}')
  await using destination = await fakeDestination({ status: 200 })
  await using started = await startSink('log_aggregator', { ...options, endpoint: destination.url })
  for (const now of ['10:11:15', '10:11:15', '10:11:16']) {
    vi.setSystemTime(Date.parse(`2026-11-23T${now}Z`))
    pod.read([line, line], (batch) => void started.sink.write(through(transforms, batch) as LogBatch))
  }
  await started.sink.close()

  const streams = destination.requests.flatMap((request) => JSON.parse(request.text()).streams)
  expect(streams.map(({ stream, values }) => [stream.at, stream.a, values.length])).toEqual([
    ['10:11:15', 'x', 4],
    ['10:11:16', 'x', 2],
  ])
})
