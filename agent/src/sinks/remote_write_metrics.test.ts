import { expect, test } from 'vitest'
import type { MetricEvent, MetricValue } from '../event/metric.ts'
import { ProtobufReader } from '../formats/protobuf.ts'
import { fakeDestination } from '../testing/destination.ts'
import { at, metric } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const counter = (value: number): MetricValue => ({ type: 'counter', value })
const gauge = (value: number): MetricValue => ({ type: 'gauge', value })
const samples = (statistic: 'histogram' | 'summary', ...pairs: [value: number, rate: number][]): MetricValue => ({
  type: 'distribution',
  samples: pairs.map(([value, rate]) => ({ value, rate })),
  statistic,
})

/** Series of a body as `name{label="value"} value@milliseconds …`, then the metadata as `name type help`. */
function shown(body: Buffer): string[] {
  const lines: string[] = []
  for (const request = new ProtobufReader(body); request.next(); ) {
    const field = request.field
    const message = request.message()
    let name = ''
    const labels: string[] = []
    const points: string[] = []
    let type = 0n
    let help = ''
    while (message.next()) {
      if (field === 1 && message.field === 1) {
        const label = ['', '']
        for (const pair = message.message(); pair.next(); ) label[pair.field - 1] = pair.text()
        if (label[0] === '__name__') name = label[1] as string
        else labels.push(`${label[0]}="${label[1]}"`)
      } else if (field === 1) {
        let value = 0
        let time = 0n
        for (const sample = message.message(); sample.next(); ) {
          if (sample.field === 1) value = sample.double()
          else time = sample.signed()
        }
        points.push(`${value}@${time}`)
      } else if (message.field === 1) type = message.unsigned()
      else if (message.field === 2) name = message.text()
      else help = message.text()
    }
    lines.push(field === 1 ? `${name}{${labels.join(',')}} ${points.join(' ')}` : `${name} ${type} ${help}`)
  }
  return lines
}

const time = '1767225602123'

test('a request is the bytes of the protocol, compressed as one block', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('remote_write_metrics', { endpoint: `${destination.url}/api/v1/write` })
  const event = metric('requests', counter(3), {
    namespace: 'app',
    tags: { code: '200' },
    timestamp: at('2024-01-02T03:04:05Z'),
  })

  expect(await sink.deliver([event])).toBe('delivered')

  const [request] = destination.requests
  expect(request).toMatchObject({ method: 'POST', path: '/api/v1/write' })
  expect(request?.headers).toMatchObject({
    'content-type': 'application/x-protobuf',
    'content-encoding': 'snappy',
    'x-prometheus-remote-write-version': '0.1.0',
  })
  expect(request?.headers['x-scope-orgid']).toBeUndefined()
  expect(request?.body().toString('hex')).toBe(
    '0a390a180a085f5f6e616d655f5f120c6170705f72657175657374730a0b0a04636f6465120332303012100900000000000008401088b183c1cc311a1a0801120c6170705f726571756573747322087265717565737473',
  )
})

test.each<{ what: string; options?: object; events: MetricEvent[]; lines: string[] }>([
  {
    what: 'the running total of increments',
    events: [metric('c', counter(1)), metric('c', counter(2))],
    lines: [`c{} 3@${time}`, 'c 1 c'],
  },
  {
    what: 'all samples of a series, ascending, where they are not aggregated',
    options: { batch: { aggregate: false } },
    events: [
      metric('g', gauge(2), { kind: 'absolute' }),
      metric('g', gauge(1), { kind: 'absolute', timestamp: at('2026-01-01T00:00:01Z') }),
      metric('g', gauge(3), { kind: 'absolute' }),
    ],
    lines: [`g{} 1@1767225601000 3@${time}`, 'g 2 g'],
  },
  {
    what: 'names and labels as they are, sorted; a bare tag is left out',
    options: { default_namespace: 'ns' },
    events: [metric('a.b', gauge(0), { tags: { b: ['1', '2'], A: '', bare: null, __name__: 'x' } })],
    lines: [`ns_a.b{A="",b="2"} 0@${time}`, 'ns_a.b 2 a.b'],
  },
  {
    what: 'a set as the number of its members',
    events: [metric('s', { type: 'set', values: ['a', 'b', 'a'] }), metric('s', { type: 'set', values: ['c'] })],
    lines: [`s{} 3@${time}`, 's 2 s'],
  },
  {
    what: 'a histogram, cumulative, whose limit stands in place of a tag of that name',
    events: [
      metric(
        'h',
        {
          type: 'histogram',
          buckets: [
            { upperLimit: 0.5, count: 1 },
            { upperLimit: 2, count: 2 },
          ],
          count: 4,
          sum: 9,
        },
        { tags: { le: 'mine' } },
      ),
    ],
    lines: [
      `h_bucket{le="0.5"} 1@${time}`,
      `h_bucket{le="2"} 3@${time}`,
      `h_bucket{le="+Inf"} 4@${time}`,
      `h_sum{le="mine"} 9@${time}`,
      `h_count{le="mine"} 4@${time}`,
      'h 3 h',
    ],
  },
  {
    what: 'a distribution as a histogram of all its samples',
    options: { buckets: [5, 1] },
    events: [metric('d', samples('histogram', [1, 2], [9, 1])), metric('d', samples('histogram', [2, 1]))],
    lines: [
      `d_bucket{le="1"} 2@${time}`,
      `d_bucket{le="5"} 3@${time}`,
      `d_bucket{le="+Inf"} 4@${time}`,
      `d_sum{} 13@${time}`,
      `d_count{} 4@${time}`,
      'd 3 d',
    ],
  },
  {
    what: 'a distribution as a summary of all its samples',
    options: { quantiles: [0.5, 0.99] },
    events: [metric('d', samples('summary', [1, 1], [2, 1])), metric('d', samples('summary', [3, 1]))],
    lines: [
      `d{quantile="0.5"} 2@${time}`,
      `d{quantile="0.99"} 3@${time}`,
      `d_sum{} 6@${time}`,
      `d_count{} 3@${time}`,
      `d_min{} 1@${time}`,
      `d_max{} 3@${time}`,
      `d_avg{} 2@${time}`,
      'd 5 d',
    ],
  },
  {
    what: 'a distribution without samples as sum and count',
    events: [metric('d', samples('summary'))],
    lines: [`d_sum{} 0@${time}`, `d_count{} 0@${time}`, 'd 5 d'],
  },
  {
    what: 'a summary',
    events: [
      metric(
        's',
        { type: 'summary', quantiles: [{ quantile: 0.9, value: 7 }], count: 2, sum: 8 },
        { kind: 'absolute' },
      ),
    ],
    lines: [`s{quantile="0.9"} 7@${time}`, `s_sum{} 8@${time}`, `s_count{} 2@${time}`, 's 5 s'],
  },
])('writes $what', async ({ options, events, lines }) => {
  await using destination = await fakeDestination()
  await using sink = await startSink('remote_write_metrics', { endpoint: destination.url, ...options })

  expect(await sink.deliver(events)).toBe('delivered')

  expect(destination.requests).toHaveLength(1)
  expect(shown(destination.requests[0]?.body() ?? Buffer.alloc(0))).toEqual(lines)
})

test.each(['snappy', 'gzip', 'zstd'])('compresses by %s', async (compression) => {
  await using destination = await fakeDestination()
  await using sink = await startSink('remote_write_metrics', { endpoint: destination.url, compression })

  expect(await sink.deliver([metric('c', counter(1))])).toBe('delivered')

  expect(destination.requests[0]?.headers['content-encoding']).toBe(compression)
  expect(shown(destination.requests[0]?.body() ?? Buffer.alloc(0))).toHaveLength(2)
})

test('a request has one tenant; an event without one is discarded, because it would go to the default tenant', async () => {
  await using destination = await fakeDestination()
  const options = { endpoint: destination.url, tenant_id: '{{ tags.team }}' }
  await using sink = await startSink('remote_write_metrics', options)
  const of = (team: string, name: string) => metric(name, counter(1), { tags: { team } })

  expect(await sink.deliver([of('a', 'x'), of('b', 'y'), metric('z', counter(1)), of('a', 'w')])).toBe('rejected')

  expect(
    destination.requests
      .map((request) => [request.headers['x-scope-orgid'], shown(request.body()).length])
      .sort(([left], [right]) => String(left).localeCompare(String(right))),
  ).toEqual([
    ['a', 4],
    ['b', 2],
  ])
  expect(sink.events.errors).toMatchObject([{ type: 'template_failed', stage: 'processing' }])
  expect(sink.events.counts.get('component_sent_events_total')).toBe(3)
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test.each([
  { auth: { strategy: 'basic', user: 'u', password: 'p' }, header: /^Basic dTpw$/ },
  { auth: { strategy: 'bearer', token: 'tok' }, header: /^Bearer tok$/ },
  {
    auth: { strategy: 'aws', access_key_id: 'AKID', secret_access_key: 'key' },
    aws: { region: 'eu-west-1' },
    header:
      /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-west-1\/aps\/aws4_request, SignedHeaders=[a-z;-]+, Signature=[0-9a-f]{64}$/,
  },
])('authenticates by $auth.strategy', async ({ header, ...options }) => {
  await using destination = await fakeDestination()
  await using sink = await startSink('remote_write_metrics', { endpoint: destination.url, ...options })

  await sink.sink.healthcheck?.(AbortSignal.timeout(5000))
  expect(await sink.deliver([metric('c', counter(1))])).toBe('delivered')

  expect(destination.requests).toHaveLength(2)
  for (const request of destination.requests) expect(request.headers['authorization']).toMatch(header)
})

test('requests go to the address of the service, if one is configured', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('remote_write_metrics', {
    endpoint: 'http://service.invalid/api/v1/write',
    auth: { strategy: 'aws', access_key_id: 'AKID', secret_access_key: 'key' },
    aws: { region: 'eu-west-1', endpoint: `${destination.url}/own` },
  })

  expect(await sink.deliver([metric('c', counter(1))])).toBe('delivered')

  expect(destination.requests[0]?.path).toBe('/own')
})

test.each([
  { status: 200, healthy: true },
  { status: 405, healthy: true },
  { status: 401, healthy: false },
  { status: 404, healthy: false },
])('a receiver that answers to GET with $status: healthy is $healthy', async ({ status, healthy }) => {
  await using destination = await fakeDestination(status)
  const options = { endpoint: `${destination.url}/write`, tenant_id: 'one' }
  await using sink = await startSink('remote_write_metrics', options)

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (healthy) await check
  else await expect(check).rejects.toMatchObject({ code: 'PEN_HEALTHCHECK' })
  expect(destination.requests[0]).toMatchObject({ method: 'GET', path: '/write' })
  expect(destination.requests[0]?.headers).toMatchObject({
    'x-prometheus-remote-write-version': '0.1.0',
    'x-scope-orgid': 'one',
    'content-encoding': 'snappy',
  })
})

test.each<{ options: object; problems: object[] }>([
  { options: {}, problems: [] },
  { options: { quantiles: [-0.1] }, problems: [{ message: 'Quantiles must be in range [0.0,1.0]' }] },
  {
    options: {
      auth: { strategy: 'bearer', token: 't' },
      request: { headers: { Authorization: 'x' } },
    },
    problems: [{ message: 'Authorization header can not be used with defined auth options' }],
  },
  { options: { request: { headers: { Authorization: 'x' } } }, problems: [] },
  { options: { aws: { region: 'eu-west-1' } }, problems: [{ path: 'aws' }] },
  { options: { endpoint: 'http://prometheus:9090' }, problems: [{ path: 'endpoint' }] },
  { options: { endpoint: 'http://prometheus:9090/' }, problems: [] },
])('checks $options', ({ options, problems }) => {
  const endpoint = 'http://prometheus:9090/api/v1/write'
  expect(problemsOf('sink', 'remote_write_metrics', { endpoint, ...options })).toMatchObject(problems)
})
