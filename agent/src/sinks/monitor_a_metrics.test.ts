import { describe, expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import type { MetricValue } from '../event/metric.ts'
import { fakeDestination } from '../testing/destination.ts'
import { at, metric } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'
import { keyOf, Sketch, sketchOf } from './monitor_a_metrics/sketch.ts'

const counter = (value: number): MetricValue => ({ type: 'counter', value })
const gauge = (value: number): MetricValue => ({ type: 'gauge', value })
const samples = (...pairs: [value: number, rate: number][]): MetricValue => ({
  type: 'distribution',
  samples: pairs.map(([value, rate]) => ({ value, rate })),
  statistic: 'summary',
})
const timestamp = at('2024-01-02T03:04:05Z')
const key = { default_api_key: 'account' }
/** Product and category of the origin, as encoded in a series and in a sketch. */
const origin = { series: '4a060a04200e280b', sketch: '42060a04200e280b' }

test('a counter is a series of protobuf', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_a_metrics', { endpoint: destination.url, ...key })
  const tags = { host: 'h1', code: '200' }

  expect(await sink.deliver([metric('requests', counter(3), { namespace: 'app', tags, timestamp })])).toBe('delivered')

  const [request] = destination.requests
  expect(request).toMatchObject({ method: 'POST', path: '/api/v2/series' })
  expect(request?.headers).toMatchObject({
    'dd-api-key': 'account',
    'dd-agent-payload': '4.87.0',
    'content-type': 'application/x-protobuf',
    'content-encoding': 'zstd',
  })
  expect(request?.body().toString('hex')).toBe(
    `0a3f0a0a0a04686f737412026831120c6170702e72657175657374731a08636f64653a323030220f09000000000000084010a5facdac062801${origin.series}`,
  )
})

test('a distribution is a sketch', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_a_metrics', { endpoint: destination.url, ...key })
  const tags = { host: 'h1', k: 'v' }

  expect(await sink.deliver([metric('lat', samples([1, 2], [3, 1]), { namespace: 'app', tags, timestamp })])).toBe(
    'delivered',
  )

  const [request] = destination.requests
  expect(request).toMatchObject({ method: 'POST', path: '/api/beta/sketches' })
  expect(request?.body().toString('hex')).toBe(
    `0a520a076170702e6c61741202683122036b3a763a3608a5facdac06100319000000000000f03f21000000000000084029abaaaaaaaaaafa3f3100000000000014403a04f414821642020201${origin.sketch}`,
  )
})

test('series as JSON: sorted, counters of one series and second as one, rates by their interval', async () => {
  await using destination = await fakeDestination(202)
  const options = { endpoint: destination.url, ...key, series_api_version: 'v1', default_namespace: 'ns' }
  await using sink = await startSink('monitor_a_metrics', options)
  const tags = { host: 'h1', b: ['2', '1'], empty: '', bare: null, device: 'd', source_type_name: 's' }

  expect(
    await sink.deliver([
      metric('users', { type: 'set', values: ['a', 'b', 'a'] }, { timestamp }),
      metric('g', gauge(2), { kind: 'absolute', timestamp }),
      metric('c', counter(1), { tags, timestamp }),
      metric('g', gauge(1), { kind: 'absolute', timestamp }),
      metric('c', counter(2), { tags, timestamp: at('2024-01-02T03:04:05.9Z') }),
      metric('c', counter(4), { tags, timestamp: at('2024-01-02T03:04:06Z') }),
      metric('r', counter(20), { timestamp, intervalMs: 10_000 }),
    ]),
  ).toBe('delivered')

  const [request] = destination.requests
  expect(request).toMatchObject({ path: '/api/v1/series' })
  expect(request?.headers).toMatchObject({ 'content-type': 'application/json', 'content-encoding': 'deflate' })
  const of = { host: 'h1', device: 'd', source_type_name: 's', tags: ['b:1', 'b:2', 'bare', 'empty:'] }
  expect(request?.json()).toEqual({
    series: [
      { metric: 'ns.c', type: 'count', points: [[1704164645, 3]], ...of },
      { metric: 'ns.c', type: 'count', points: [[1704164646, 4]], ...of },
      { metric: 'ns.r', type: 'rate', interval: 10, points: [[1704164645, 2]], tags: [] },
      { metric: 'ns.g', type: 'gauge', points: [[1704164645, 2]], tags: [] },
      { metric: 'ns.g', type: 'gauge', points: [[1704164645, 1]], tags: [] },
      { metric: 'ns.users', type: 'gauge', points: [[1704164645, 2]], tags: [] },
    ],
  })
})

test('a summary is two counters and a gauge for each quantile', async () => {
  await using destination = await fakeDestination(202)
  const options = { endpoint: destination.url, ...key, series_api_version: 'v1' }
  await using sink = await startSink('monitor_a_metrics', options)
  const summary = (count: number, sum: number): MetricValue => ({
    type: 'summary',
    quantiles: [{ quantile: 0.5, value: 1.5 }],
    count,
    sum,
  })
  const absolute = { kind: 'absolute', timestamp, tags: { k: 'v' } } as const

  expect(await sink.deliver([metric('s', summary(2, 3), absolute), metric('s', summary(5, 9), absolute)])).toBe(
    'delivered',
  )

  const point = (value: number) => [[1704164645, value]]
  const quantile = { metric: 's', type: 'gauge', points: point(1.5), tags: ['k:v', 'quantile:0.5'] }
  expect(destination.requests[0]?.json()).toEqual({
    series: [
      { metric: 's_count', type: 'count', points: point(3), tags: ['k:v'] },
      { metric: 's_sum', type: 'count', points: point(6), tags: ['k:v'] },
      quantile,
      quantile,
    ],
  })
})

test('a request has one kind and one key; an event may contain its own key', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_a_metrics', { endpoint: destination.url, ...key })
  const metadata = { ...noMetadata, secrets: { datadog_api_key: 'own' } }

  expect(
    await sink.deliver([
      metric('a', counter(1)),
      metric('b', samples([1, 1])),
      metric('c', counter(1), { metadata }),
      metric('d', counter(1)),
    ]),
  ).toBe('delivered')

  expect(destination.requests.map(({ path, headers }) => `${path} ${headers['dd-api-key']}`).sort()).toEqual([
    '/api/beta/sketches account',
    '/api/v2/series account',
    '/api/v2/series own',
  ])
})

test('empty samples are omitted; values beyond a sketch are discarded', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_a_metrics', { endpoint: destination.url, ...key })
  const huge: MetricValue = {
    type: 'histogram',
    buckets: [{ upperLimit: 1, count: 2 ** 32 }],
    count: 2 ** 32,
    sum: 1,
  }

  expect(await sink.deliver([metric('none', samples()), metric('huge', huge)])).toBe('rejected')

  expect(destination.requests).toHaveLength(0)
  expect(sink.events.counts.get('component_discarded_events_total intentional=true')).toBe(1)
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test('a body above the limit after compression is halved before it is sent', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_a_metrics', { endpoint: destination.url, ...key })
  // Names that hardly compress.
  const noise = (n: number) => Array.from({ length: 120 }, (_, at) => Math.sin(n * 1000 + at).toString(36)).join('')
  const events = Array.from({ length: 600 }, (_, n) => metric(noise(n), counter(1)))

  expect(await sink.deliver(events)).toBe('delivered')

  expect(destination.requests.length).toBeGreaterThan(1)
  for (const { raw } of destination.requests) expect(raw.length).toBeLessThanOrEqual(512_000)
  expect(sink.events.counts.get('component_sent_events_total')).toBe(600)
})

test('checks whether the key is valid', async () => {
  await using destination = await fakeDestination(200, 403)
  await using sink = await startSink('monitor_a_metrics', { endpoint: destination.url, ...key })

  await sink.sink.healthcheck?.(AbortSignal.timeout(5000))
  await expect(sink.sink.healthcheck?.(AbortSignal.timeout(5000))).rejects.toMatchObject({ code: 'PEN_HEALTHCHECK' })

  expect(destination.requests[0]).toMatchObject({ method: 'GET', path: '/api/v1/validate' })
  expect(destination.requests[0]?.headers['dd-api-key']).toBe('account')
})

test.each<{ options: object; problems: object[] }>([
  { options: key, problems: [] },
  { options: {}, problems: [{ path: 'default_api_key' }] },
  {
    options: { ...key, endpoint: 'http://localhost', tls: { enabled: true } },
    problems: [{ path: 'tls.enabled' }],
  },
])('checks $options', ({ options, problems }) => {
  expect(problemsOf('sink', 'monitor_a_metrics', options)).toMatchObject(problems)
})

describe('sketches', () => {
  test.each([
    [0, 0],
    [1e-10, 0],
    [1e-9, 1],
    [0.001, 892],
    [0.5, 1293],
    [1, 1338],
    [2, 1383],
    [3, 1409],
    [10, 1487],
    [100, 1635],
    [1e6, 2229],
    [-3, -1409],
  ])('the key of %d is %d', (value, bin) => {
    expect(keyOf(value) + 0).toBe(bin)
  })

  test('a bin counts in 16 bits: full ones follow the rest', () => {
    const sketch = new Sketch()
    sketch.insert(1, 65_535 * 2 + 5)
    expect(sketch.bins()).toEqual([
      { key: 1338, count: 5 },
      { key: 1338, count: 65_535 },
      { key: 1338, count: 65_535 },
    ])
  })

  test('beyond 4096 bins, the lowest are merged', () => {
    const sketch = new Sketch()
    for (let n = 0; n < 5000; n++) sketch.insert(1e-8 * (2 / 128 + 1) ** n, 1)
    const bins = sketch.bins()
    expect(bins).toHaveLength(4096)
    expect(bins[0]?.count).toBe(905)
    expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(5000)
  })

  test('a histogram is spread over the bins between its limits, and keeps its count', () => {
    const sketch = sketchOf({
      type: 'histogram',
      buckets: [
        { upperLimit: 1, count: 1 },
        { upperLimit: 2, count: 100 },
        { upperLimit: Number.POSITIVE_INFINITY, count: 3 },
      ],
      count: 104,
      sum: 200,
    })
    const bins = sketch.bins()
    expect(sketch.count).toBe(104)
    expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(104)
    expect(bins[0]).toEqual({ key: 1338, count: 2 })
    expect(bins.at(-1)?.key).toBe(1383)
  })
})
