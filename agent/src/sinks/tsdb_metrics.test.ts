import { expect, test } from 'vitest'
import type { MetricValue } from '../event/metric.ts'
import { fakeDestination } from '../testing/destination.ts'
import { metric } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const first = { database: 'db' }
const second = { org: 'o', bucket: 'b', token: 'tok' }
const time = '1767225602123456789'
const counter = (value: number): MetricValue => ({ type: 'counter', value })
const samples = (...pairs: [value: number, rate: number][]): MetricValue => ({
  type: 'distribution',
  samples: pairs.map(([value, rate]) => ({ value, rate })),
  statistic: 'histogram',
})
const histogram: MetricValue = {
  type: 'histogram',
  buckets: [
    { upperLimit: 1, count: 1 },
    { upperLimit: 2.1, count: 2 },
    { upperLimit: 3, count: 3 },
  ],
  count: 6,
  sum: 12.5,
}
const summary: MetricValue = {
  type: 'summary',
  quantiles: [
    { quantile: 0.01, value: 1.5 },
    { quantile: 0.5, value: 2 },
    { quantile: 0.99, value: 3 },
  ],
  count: 6,
  sum: 12,
}

test.each<{ what: string; options?: object; event: Parameters<typeof metric>; line: string }>([
  {
    what: 'a counter',
    event: ['total', counter(1.5), { namespace: 'ns', tags: { region: 'us west' } }],
    line: `ns.total,metric_type=counter,region=us\\ west value=1.5 ${time}`,
  },
  {
    what: 'numbers without exponent',
    event: ['g', { type: 'gauge', value: 1e23 }, { kind: 'absolute' }],
    line: `g,metric_type=gauge value=100000000000000000000000 ${time}`,
  },
  {
    what: 'a histogram, first generation',
    event: ['requests', histogram],
    line: `requests,metric_type=histogram bucket_1=1i,bucket_2.1=2i,bucket_3=3i,count=6i,sum=12.5 ${time}`,
  },
  {
    what: 'a histogram, second generation',
    options: second,
    event: ['requests', histogram],
    line: `requests,metric_type=histogram bucket_1=1u,bucket_2.1=2u,bucket_3=3u,count=6u,sum=12.5 ${time}`,
  },
  {
    what: 'a summary',
    event: ['requests_sum', summary],
    line: `requests_sum,metric_type=summary count=6i,quantile_0.01=1.5,quantile_0.5=2,quantile_0.99=3,sum=12 ${time}`,
  },
  {
    what: 'a distribution',
    options: { ...first, quantiles: [0.5, 0.95] },
    event: ['lat', samples([1, 3], [2, 3], [3, 2]), { namespace: 'ns' }],
    line: `ns.lat,metric_type=distribution avg=1.875,count=8,max=3,median=2,min=1,quantile_0.50=2,quantile_0.95=3,sum=15 ${time}`,
  },
  {
    what: 'quantiles that differ in the third decimal',
    options: { ...first, quantiles: [0.5, 0.99, 0.995, 0.999] },
    event: ['lat', samples([1, 3], [2, 3], [3, 2])],
    line: `lat,metric_type=distribution avg=1.875,count=8,max=3,median=2,min=1,quantile_0.50=2,quantile_0.99=3,quantile_0.995=3,quantile_0.999=3,sum=15 ${time}`,
  },
  {
    what: 'a set',
    event: ['users', { type: 'set', values: ['a', 'b', 'a'] }],
    line: `users,metric_type=set value=2 ${time}`,
  },
  {
    what: 'names and tags with every special character; empty and bare tags are left out',
    options: { ...first, default_namespace: 'a=b', tags: { 'k,': 'set' } },
    event: [
      'm x',
      counter(1),
      { tags: { 'k,': 'own', back: '\\', line: 'a\nb', empty: '', bare: null, many: ['1', '2'] } },
    ],
    line: `a\\=b.m\\ x,metric_type=counter,back=\\\\,k\\,=set,line=a\\nb,many=2 value=1 ${time}`,
  },
])('writes $what', async ({ options = first, event, line }) => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('tsdb_metrics', { endpoint: destination.url, ...options })

  expect(await sink.deliver([metric(...event)])).toBe('delivered')

  expect(destination.requests.map((request) => request.text())).toEqual([line])
})

test.each([
  {
    generation: 'first',
    options: { database: 'd b', consistency: 'one', retention_policy_name: 'r', username: 'u', password: 'p&' },
    path: '/base/write?consistency=one&db=d+b&rp=r&p=p%26&u=u&precision=ns',
    authorization: 'Token',
  },
  {
    generation: 'second',
    options: { ...second, database: 'unused' },
    path: '/base/api/v2/write?org=o&bucket=b&precision=ns',
    authorization: 'Token tok',
  },
])('sends to the $generation generation', async ({ options, path, authorization }) => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('tsdb_metrics', { endpoint: `${destination.url}/base/`, ...options })

  expect(await sink.deliver([metric('m', counter(1))])).toBe('delivered')

  expect(destination.requests[0]).toMatchObject({ method: 'POST', path })
  expect(destination.requests[0]?.headers['authorization']?.trim()).toBe(authorization)
  expect(destination.requests[0]?.headers).toMatchObject({ 'content-type': 'text/plain' })
  expect(destination.requests[0]?.headers['content-encoding']).toBeUndefined()
})

test('one line for each series of a batch: increments are added, the latest gauge stays', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('tsdb_metrics', { endpoint: destination.url, ...first })
  const gauge = (value: number) => metric('g', { type: 'gauge', value }, { kind: 'absolute' })

  expect(await sink.deliver([metric('c', counter(1)), gauge(7), metric('c', counter(2)), gauge(3)])).toBe('delivered')

  expect(destination.requests.map((request) => request.text())).toEqual([
    `c,metric_type=counter value=3 ${time}\ng,metric_type=gauge value=3 ${time}`,
  ])
  expect(sink.events.counts.get('component_sent_events_total')).toBe(4)
})

test('the first absolute counter is only the base for the next', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('tsdb_metrics', { endpoint: destination.url, ...first })
  const total = (value: number) => metric('c', counter(value), { kind: 'absolute' })

  expect(await sink.write([total(10)])).toBe('delivered')
  expect(destination.requests).toHaveLength(0)
  expect(await sink.deliver([total(12)])).toBe('delivered')

  expect(destination.requests.map((request) => request.text())).toEqual([`c,metric_type=counter value=2 ${time}`])
  expect(sink.events.counts.get('component_discarded_events_total intentional=true')).toBe(1)
})

test('discards only values that the protocol cannot express', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('tsdb_metrics', { endpoint: destination.url, ...first })
  const unsupported = [metric('none', samples()), metric('nan', counter(Number.NaN))]

  expect(await sink.deliver([...unsupported, metric('c', counter(1))])).toBe('rejected')

  expect(destination.requests.map((request) => request.text())).toEqual([`c,metric_type=counter value=1 ${time}`])
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
  expect(sink.events.errors).toMatchObject([{ type: 'encoder_failed', stage: 'processing', count: 2 }])
})

test.each([
  { status: 204, healthy: true },
  { status: 200, healthy: true },
  { status: 503, healthy: false },
])('a server that answers to a ping with $status: healthy is $healthy', async ({ status, healthy }) => {
  await using destination = await fakeDestination(status)
  await using sink = await startSink('tsdb_metrics', { endpoint: destination.url, ...first })

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (healthy) await check
  else await expect(check).rejects.toMatchObject({ code: 'PEN_HEALTHCHECK' })
  expect(destination.requests[0]).toMatchObject({ method: 'GET', path: '/ping' })
})

test.each<{ options: object; problems: object[] }>([
  { options: first, problems: [] },
  { options: second, problems: [] },
  { options: { ...first, ...second }, problems: [] },
  { options: {}, problems: [{ message: 'InfluxDB v1 or v2 should be configured as endpoint.' }] },
  { options: { username: 'u' }, problems: [{ path: 'database' }] },
  { options: { org: 'o', token: 't' }, problems: [{ path: 'bucket' }] },
  {
    options: { ...second, username: 'u', password: 'secret' },
    problems: [
      { message: 'Unclear settings. Both version configured v1: username, password, v2: org, bucket, token.' },
    ],
  },
  { options: { ...first, quantiles: [1.1] }, problems: [{ message: 'Quantiles must be in range [0.0,1.0]' }] },
  {
    options: { ...first, encoding: { except_fields: ['a'] } },
    problems: [{ path: 'encoding', severity: 'warning' }],
  },
])('checks $options', ({ options, problems }) => {
  expect(problemsOf('sink', 'tsdb_metrics', { endpoint: 'http://tsdb:8086', ...options })).toMatchObject(problems)
})

test('only the rejected part of a partially written request is discarded', async () => {
  await using destination = await fakeDestination((request) =>
    request.text().includes('b,metric_type')
      ? { status: 400, body: '{"error":"partial write: field type conflict: input field \\"value\\" dropped=1"}' }
      : 204,
  )
  await using sink = await startSink('tsdb_metrics', { endpoint: destination.url, ...first })

  expect(await sink.deliver(['a', 'b', 'c'].map((name) => metric(name, counter(1))))).toBe('rejected')

  const names = destination.requests.map((request) => request.text().match(/^\w/gm)?.join(''))
  expect(names).toEqual(['abc', 'a', 'bc', 'b', 'c'])
  expect(sink.events.counts.get('component_sent_events_total')).toBe(2)
  expect(sink.events.discards).toEqual([
    { events: 1, intentional: false, reason: 'Service call failed. No retries or retries exhausted.' },
  ])
  expect(sink.events.errors).toMatchObject([{ type: 'request_failed', code: 'http_response_400' }])
})

test('reports of errors never contain the password of the query', async () => {
  await using destination = await fakeDestination(400)
  const options = { endpoint: destination.url, ...first, username: 'u', password: 'hidden-password' }
  await using sink = await startSink('tsdb_metrics', options)

  expect(await sink.deliver([metric('m', counter(1))])).toBe('rejected')

  expect(JSON.stringify(sink.events.errors)).not.toContain('hidden-password')
})
