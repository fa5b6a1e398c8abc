import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { LogEvent } from '../event/log.ts'
import { MetricEvent, type MetricParts } from '../event/metric.ts'
import { fakeDestination } from '../testing/destination.ts'
import { at, log } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const timestamp = at('2024-01-02T03:04:05.678Z')

function metric(parts: Partial<MetricParts>): MetricEvent {
  return new MetricEvent({ name: 'm', kind: 'absolute', value: { type: 'gauge', value: 1 }, timestamp, ...parts })
}

test.each<{ what: string; options: object; events: (LogEvent | MetricEvent)[]; body: string }>([
  {
    what: 'logs with attributes, without arrays',
    options: { api: 'logs' },
    events: [
      log({ message: 'hi', timestamp, host: 'h1', list: [1], a: { b: [1], c: 'x' } }),
      log({ timestamp: 1.5 }),
      log({ message: 7, timestamp: 12 }),
    ],
    body: '[{"logs":[{"attributes":{"a":{"c":"x"},"host":"h1"},"message":"hi","timestamp":"2024-01-02T03:04:05.678Z"},{"message":"log from penstock","timestamp":1500},{"message":"7","timestamp":12}]}]\n',
  },
  {
    what: 'the fields that are asked for',
    options: { api: 'logs', encoding: { except_fields: ['secret'], timestamp_format: 'unix' } },
    events: [log({ message: 'hi', timestamp, secret: 1, when: timestamp })],
    body: '[{"logs":[{"attributes":{"when":1704164645},"message":"hi","timestamp":1704164645}]}]\n',
  },
  {
    what: 'flat events',
    options: { api: 'events', account_id: '7' },
    events: [
      log({
        message: '{"cpu":1,"on":true,"s":"t","deep":{"x":1},"list":[1],"no":null}',
        a: { b: 'x', l: [1] },
        timestamp,
      }),
      log({ message: 'plain', eventType: 'Mine' }),
    ],
    body: '[{"a.b":"x","cpu":1.0,"deep.x":1.0,"eventType":"PenstockSink","list":"[1]","on":true,"s":"t","timestamp":1704164645678},{"eventType":"Mine","message":"plain"}]\n',
  },
  {
    what: 'metrics',
    options: { api: 'metrics' },
    events: [
      metric({
        name: 'req',
        kind: 'incremental',
        value: { type: 'counter', value: 3 },
        intervalMs: 10_000,
        tags: new Map([['code', '200']]),
      }),
      metric({ name: 'total', namespace: 'ns', value: { type: 'counter', value: 5 } }),
      metric({ name: 'temp', value: { type: 'gauge', value: 1.5 } }),
    ],
    body: '[{"metrics":[{"attributes":{"code":"200"},"interval.ms":10000,"name":"req","timestamp":1704164645678,"type":"count","value":3.0},{"name":"total","timestamp":1704164645678,"type":"gauge","value":5.0},{"name":"temp","timestamp":1704164645678,"type":"gauge","value":1.5}]}]\n',
  },
])('sends $what', async ({ options, events, body }) => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('observability_d', {
    license_key: 'key',
    override_uri: `${destination.url}/v1`,
    ...options,
  })

  expect(await sink.deliver(events)).toBe('delivered')

  const [request] = destination.requests
  expect(request?.text()).toBe(body)
  expect(request).toMatchObject({ method: 'POST', path: '/v1' })
  expect(request?.headers).toMatchObject({
    'content-type': 'application/json',
    'content-encoding': 'gzip',
    'api-key': 'key',
  })
})

test('unknown metrics are discarded, the others are sent', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('observability_d', {
    api: 'metrics',
    license_key: 'key',
    override_uri: destination.url,
  })

  const status = await sink.deliver([
    metric({ value: { type: 'set', values: ['a'] } }),
    metric({ value: { type: 'gauge', value: Number.NaN } }),
    metric({ kind: 'incremental', value: { type: 'counter', value: 1 } }),
    metric({}),
  ])

  expect(status).toBe('rejected')
  expect((destination.requests[0]?.json() as [{ metrics: unknown[] }] | undefined)?.[0].metrics).toHaveLength(1)
  expect(sink.events.errors.map(({ type, fields }) => `${type}: ${fields?.['reason']}`)).toEqual([
    'invalid_metric: unsupported metric type',
    'invalid_metric: metric value is NaN or infinite',
    'invalid_metric: incremental counter missing interval',
  ])
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(3)
})

test.each([
  { api: 'logs', event: metric({}) },
  { api: 'events', event: metric({}) },
  { api: 'metrics', event: log({ message: 'm' }) },
])('the API $api discards events of the other type intentionally', async ({ api, event }) => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('observability_d', {
    api,
    account_id: '7',
    license_key: 'key',
    override_uri: destination.url,
  })

  expect(await sink.deliver([event])).toBe('delivered')

  expect(destination.requests).toHaveLength(0)
  expect(sink.events.counts.get('component_discarded_events_total intentional=true')).toBe(1)
})

test('answers of 400 are counted', async () => {
  await using destination = await fakeDestination(400)
  await using sink = await startSink('observability_d', {
    api: 'logs',
    license_key: 'k',
    override_uri: destination.url,
  })

  expect(await sink.deliver([log({ message: 'm' })])).toBe('rejected')

  expect(sink.events.counts.get('http_bad_requests_total')).toBe(1)
})

test.each([
  { status: 202, problem: undefined },
  { status: 403, problem: 'The license key is not valid' },
  { status: 500, problem: 'responded with status 500' },
])('the health check after $status', async ({ status, problem }) => {
  await using destination = await fakeDestination(status)
  await using sink = await startSink('observability_d', {
    api: 'logs',
    license_key: 'k',
    override_uri: destination.url,
  })

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (problem === undefined) await check
  else await expect(check).rejects.toThrow(problem)
  expect(destination.requests[0]?.text()).toBe('[{"logs":[]}]\n')
  expect(destination.requests[0]?.headers['api-key']).toBe('k')
})

test('events need an account', () => {
  expect(problemsOf('sink', 'observability_d', { api: 'events', license_key: 'k' })).toMatchObject([
    { path: 'account_id' },
  ])
  expect(problemsOf('sink', 'observability_d', { api: 'logs', license_key: 'k' })).toEqual([])
})

test.each(['gzip', 'none'])(
  'halves requests above the limit of the platform before it sends them (%s)',
  async (compression) => {
    // Text that hardly compresses, because the limit applies to the sent bytes.
    const noise = (name: string, bytes: number) => {
      let text = ''
      for (let part = 0; text.length < bytes; part++)
        text += createHash('sha512').update(`${name}${part}`).digest('base64')
      return text
    }
    await using destination = await fakeDestination(202)
    const options = { api: 'logs', license_key: 'k', override_uri: destination.url, compression }
    await using sink = await startSink('observability_d', { ...options, batch: { max_bytes: 10_000_000 } })
    const events = ['a', 'b', 'c'].map((name) => log({ message: name, text: noise(name, 600_000) }))

    expect(await sink.deliver([...events, log({ message: 'huge', text: noise('d', 1_500_000) })])).toBe('rejected')

    const messages = destination.requests.map((request) => request.text().match(/"message":"\w+"/g))
    expect(messages.flat()).toEqual(['a', 'b', 'c'].map((name) => `"message":"${name}"`))
    for (const { raw } of destination.requests) expect(raw.length).toBeLessThanOrEqual(1_000_000)
    expect(sink.events.counts.get('component_sent_events_total')).toBe(3)
    expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
  },
)
