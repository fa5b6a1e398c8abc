import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { LogEvent } from '../event/log.ts'
import { fakeDestination } from '../testing/destination.ts'
import { at, log } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'
import { apiAddress } from './monitor_a/site.ts'

const timestamp = '2024-01-02T03:04:05.678Z'

test.each([
  {
    what: 'the reserved names',
    options: {},
    fields: { message: 'hi', timestamp, host: 'h1', service: 'api', ddtags: ['env:prod', 'v:1'], k: 1 },
    body: `[{"ddtags":"env:prod,v:1","hostname":"h1","k":1,"message":"hi","service":"api","timestamp":"${timestamp}"}]`,
  },
  {
    what: 'a field with a formerly reserved name under another name',
    options: {},
    fields: { message: 'hi', host: null, hostname: 'old' },
    body: '[{"_RESERVED_host":"old","hostname":null,"message":"hi"}]',
  },
  {
    what: 'a host name of its own, which the host that a source filled in does not displace',
    options: {},
    fields: { message: 'hi', host: hostname(), hostname: 'web1' },
    body: `[{"host":"${hostname()}","hostname":"web1","message":"hi"}]`,
  },
  {
    what: 'the fields and the timestamps that are asked for',
    options: { encoding: { except_fields: ['k'], timestamp_format: 'unix_ms' } },
    fields: { message: 'hi', timestamp, k: 1 },
    body: '[{"message":"hi","timestamp":1704164645678}]',
  },
  {
    what: 'other fields below the message',
    options: { conforms_as_agent: true },
    fields: { message: 'hi', timestamp, host: 'h1', status: 'info', k: 1 },
    body: `[{"hostname":"h1","message":{"k":1,"message":"hi"},"status":"info","timestamp":"${timestamp}"}]`,
  },
  {
    what: 'the same if the header asks for it',
    options: { request: { headers: { 'DD-Protocol': 'agent-json' } } },
    fields: { message: 'hi', k: 1 },
    body: '[{"message":{"k":1,"message":"hi"}}]',
  },
])('sends $what', async ({ options, fields, body }) => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_a_logs', {
    default_api_key: 'key-1',
    endpoint: destination.url,
    ...options,
  })

  expect(await sink.deliver([log(fields)])).toBe('delivered')

  const [request] = destination.requests
  expect(request?.text()).toBe(body)
  expect(request).toMatchObject({ method: 'POST', path: '/api/v2/logs' })
  expect(request?.headers).toMatchObject({
    'content-type': 'application/json',
    'content-encoding': 'gzip',
    'dd-api-key': 'key-1',
    'dd-evp-origin': 'penstock',
    'dd-evp-origin-version': expect.stringMatching(/^\d+\.\d+\.\d+/),
  })
  expect(request?.headers['dd-protocol']).toBe(body.includes('{"k"') ? 'agent-json' : undefined)
})

test('events with their own key never share a request with others', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_a_logs', {
    default_api_key: 'key-1',
    endpoint: `${destination.url}/own/path`,
    compression: 'none',
  })
  const own = new LogEvent({ message: 'b' }, { value: {}, secrets: { datadog_api_key: 'key-2' } })

  expect(await sink.deliver([log({ message: 'a' }), own, log({ message: 'c' })])).toBe('delivered')

  const sent = destination.requests.map((request) => [request.path, request.headers['dd-api-key'], request.text()])
  expect(sent.sort()).toEqual([
    ['/own/path', 'key-1', '[{"message":"a"},{"message":"c"}]'],
    ['/own/path', 'key-2', '[{"message":"b"}]'],
  ])
})

test('a body above the limit of the service is halved, and only an event above it is discarded', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_a_logs', { default_api_key: 'k', endpoint: destination.url })
  // Each quote needs two bytes on the wire, more than the batch estimates.
  const large = '"'.repeat(1_400_000)
  const events = [large, large, '"'.repeat(2_600_000)].map(
    (message) => new LogEvent({ message, timestamp: at(timestamp) }),
  )

  expect(await sink.deliver(events)).toBe('rejected')

  for (const request of destination.requests) expect(request.body().length).toBeLessThanOrEqual(5_000_000)
  expect(sink.events.counts.get('component_sent_events_total')).toBe(2)
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
  expect(sink.events.errors).toEqual([
    expect.objectContaining({ type: 'encoder_failed', fields: { problem: 'Event too large to encode.' } }),
  ])
})

test.each([
  { status: 200, problem: undefined },
  { status: 403, problem: 'The API key is invalid' },
  { status: 500, problem: 'responded with status 500' },
])('the health check after $status', async ({ status, problem }) => {
  await using destination = await fakeDestination(status)
  await using sink = await startSink('monitor_a_logs', { default_api_key: 'key-1', endpoint: destination.url })

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (problem === undefined) await check
  else await expect(check).rejects.toThrow(problem)
  expect(destination.requests[0]).toMatchObject({ method: 'GET', path: '/api/v1/validate' })
  expect(destination.requests[0]?.headers['dd-api-key']).toBe('key-1')
})

test.each([
  [undefined, 'us5.datadoghq.com', 'https://api.us5.datadoghq.com/v'],
  ['https://http-intake.logs.datadoghq.eu/api/v2/logs', 'x', 'https://api.datadoghq.eu/v'],
  ['https://http-intake.logs.us3.datadoghq.com', 'x', 'https://api.us3.datadoghq.com/v'],
  ['http://proxy.example:8080/in', 'x', 'http://proxy.example:8080/v'],
])('the API next to %s is %s', (endpoint, site, address) => {
  expect(apiAddress(endpoint, site, '/v')).toBe(address)
})

test('refuses limits that the service does not have, and a missing key', () => {
  expect(problemsOf('sink', 'monitor_a_logs', { batch: { max_bytes: 5_000_000, max_events: 2000 } })).toMatchObject([
    { path: 'default_api_key' },
    { path: 'batch.max_bytes', message: 'provided `max_bytes` exceeds the maximum limit of 4250000' },
    { path: 'batch.max_events', message: 'provided `max_events` exceeds the maximum limit of 1000' },
  ])
})
