import { expect, test } from 'vitest'
import { fakeDestination } from '../testing/destination.ts'
import { log } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const timestamp = '2024-01-02T03:04:05.678901234Z'

test.each([
  {
    what: 'an event as JSON',
    options: { encoding: { codec: 'json' }, event_type: 'json', indexed_fields: ['lvl', '.a.b', 'none', '#tag'] },
    fields: { message: 'hi', host: 'h1', timestamp, lvl: 'w', a: { b: 1 }, '#tag': 't' },
    body: '{"event":{"#tag":"t","@timestamp.nanos":901234,"a":{"b":1},"host":"h1","lvl":"w","message":"hi"},"fields":{"#tag":"t","a.b":1,"lvl":"w"},"host":"h1","sourcetype":"json","time":1704164645.678}',
  },
  {
    what: 'an event as text',
    options: { encoding: { codec: 'text' }, source: '{{ file }}', index: 'repo', event_type: '{{ none }}' },
    fields: { message: 'say "hi"', host: null, timestamp: '2024-01-02T03:04:05Z', file: '/a.log' },
    body: '{"event":"say \\"hi\\"","fields":{},"host":"<null>","index":"repo","source":"/a.log","time":1704164645.0}',
  },
  {
    what: 'keys of the user',
    options: {
      encoding: { codec: 'json' },
      host_key: 'origin.name',
      timestamp_key: 'when',
      timestamp_nanos_key: 'time.nanos',
    },
    fields: { message: 'hi', timestamp: '2024-01-02T03:04:05Z', origin: { name: 'o' }, when: 'no instant' },
    body: '{"event":{"message":"hi","origin":{"name":"o"},"timestamp":"2024-01-02T03:04:05Z","when":"no instant"},"fields":{},"host":"o"}',
  },
])('sends $what', async ({ options, fields, body }) => {
  await using destination = await fakeDestination()
  await using sink = await startSink('logsvc_b_logs', { token: 'tok', endpoint: destination.url, ...options })
  const event = log(fields)

  expect(await sink.deliver([event, event])).toBe('delivered')

  const [request] = destination.requests
  expect(request?.text()).toBe(body + body)
  expect(request).toMatchObject({ method: 'POST', path: '/services/collector/event' })
  expect(request?.headers).toMatchObject({
    'content-type': 'application/json',
    authorization: 'Splunk tok',
    'x-splunk-request-channel': expect.stringMatching(/^[0-9a-f-]{36}$/),
  })
  expect(sink.events.errors.map(({ type }) => type)).toEqual(
    'source' in options
      ? ['template_failed', 'template_failed']
      : 'timestamp_key' in options
        ? ['conversion_failed']
        : [],
  )
})

test('only the event that the codec cannot write is discarded', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('logsvc_b_logs', {
    token: 'tok',
    endpoint: destination.url,
    encoding: { codec: 'gelf' },
  })

  expect(await sink.deliver([log({ other: 1 }), log({ message: 'm', host: 'h' })])).toBe('rejected')

  expect(destination.requests[0]?.text()).toMatch(
    /^\{"event":\{[^}]*"short_message":"m"[^}]*\},"fields":\{\},"host":"h"\}$/,
  )
  expect(sink.events.counts.get('component_sent_events_total')).toBe(1)
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test.each([
  { status: 200, problem: undefined },
  { status: 401, problem: 'Invalid HEC token' },
  { status: 503, problem: 'Queues are full' },
  { status: 404, problem: 'responded with status 404' },
])('the health check after $status', async ({ status, problem }) => {
  await using destination = await fakeDestination(status)
  await using sink = await startSink('logsvc_b_logs', {
    token: 'tok',
    endpoint: destination.url,
    encoding: { codec: 'json' },
  })

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (problem === undefined) await check
  else await expect(check).rejects.toThrow(problem)
  expect(destination.requests[0]).toMatchObject({ method: 'GET', path: '/services/collector/health/1.0' })
  expect(destination.requests[0]?.headers['authorization']).toBe('Splunk tok')
})

test('refuses an invalid path, and an endpoint with a path', () => {
  const options = {
    token: 't',
    encoding: { codec: 'json' },
    endpoint: 'https://a.example/b',
    indexed_fields: ['a..b'],
    timestamp_nanos_key: '%meta',
  }
  expect(problemsOf('sink', 'logsvc_b_logs', options)).toMatchObject([
    { path: 'endpoint' },
    { path: 'timestamp_nanos_key' },
    { path: 'indexed_fields' },
  ])
})
