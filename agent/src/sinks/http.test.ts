import { expect, test } from 'vitest'
import { fakeDestination } from '../testing/destination.ts'
import { log } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const two = () => [log({ n: 1, m: 'é' }), log({ n: 2, m: 'x' })]

test.each([
  {
    what: 'an array',
    options: { encoding: { codec: 'json' } },
    body: '[{"m":"é","n":1},{"m":"x","n":2}]',
    type: 'application/json',
  },
  {
    what: 'lines',
    options: { encoding: { codec: 'json' }, framing: { method: 'newline_delimited' } },
    body: '{"m":"é","n":1}\n{"m":"x","n":2}\n',
    type: 'application/x-ndjson',
  },
  {
    what: 'an array between texts',
    options: { encoding: { codec: 'json' }, payload_prefix: '{"data":', payload_suffix: '}' },
    body: '{"data":[{"m":"é","n":1},{"m":"x","n":2}]}',
    type: 'application/json',
  },
  { what: 'text', options: { encoding: { codec: 'logfmt' } }, body: 'm=é n=1\nm=x n=2\n', type: 'text/plain' },
])('sends $what', async ({ options, body, type }) => {
  await using destination = await fakeDestination()
  await using sink = await startSink('http', { uri: `${destination.url}/in?a=b`, ...options })

  expect(await sink.deliver(two())).toBe('delivered')

  expect(destination.requests).toHaveLength(1)
  expect(destination.requests[0]).toMatchObject({ method: 'POST', path: '/in?a=b' })
  expect(destination.requests[0]?.text()).toBe(body)
  expect(destination.requests[0]?.headers).toMatchObject({
    'content-type': type,
    'accept-encoding': 'identity',
    'user-agent': expect.stringMatching(/^Penstock\/\d+\.\d+\.\d+/),
  })
})

test.each([
  'none',
  'gzip',
  'zlib',
  'zstd',
  'snappy',
  { algorithm: 'gzip', level: 'best' },
  { algorithm: 'zstd', level: 19 },
])('compresses by %j', async (compression) => {
  await using destination = await fakeDestination()
  await using sink = await startSink('http', { uri: destination.url, encoding: { codec: 'json' }, compression })

  expect(await sink.deliver(two())).toBe('delivered')

  const [request] = destination.requests
  expect(request?.json()).toHaveLength(2)
  expect(sink.events.counts.get('component_sent_bytes_total')).toBe(request?.raw.length)
})

test('events with different addresses never share a request', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('http', {
    uri: `${destination.url}/{{ app }}`,
    encoding: { codec: 'text' },
    method: 'put',
    auth: { strategy: 'bearer', token: 't' },
    request: { headers: { 'X-Own': 'yes', 'Content-Type': 'text/own' } },
  })

  const status = await sink.deliver([
    log({ app: 'a', message: '1' }),
    log({ app: 'b', message: '2' }),
    log({ app: 'a', message: '3' }),
    log({ message: 'nowhere to go' }),
  ])

  expect(status).toBe('rejected')
  expect(destination.requests.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(['PUT /a', 'PUT /b'])
  expect(destination.requests.find(({ path }) => path === '/a')?.text()).toBe('1\n3\n')
  expect(destination.requests[0]?.headers).toMatchObject({
    authorization: 'Bearer t',
    'x-own': 'yes',
    'content-type': 'text/own',
  })
  expect(sink.events.errors).toEqual([expect.objectContaining({ type: 'template_failed', stage: 'processing' })])
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test('events with different values of a header never share a request', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('http', {
    uri: `${destination.url}/in`,
    encoding: { codec: 'text' },
    request: { headers: { 'X-Tenant': 'team-{{ team }}', 'X-Fixed': '100% %F', 'Content-Type': 'text/own' } },
  })

  const status = await sink.deliver([
    log({ team: 'a', message: '1' }),
    log({ team: 'b', message: '2' }),
    log({ team: 'a', message: '3' }),
    log({ message: 'of no team' }),
    log({ team: 'a\nX-Other: b', message: 'two headers' }),
  ])

  expect(status).toBe('rejected')
  const sent = destination.requests.map((request) => [request.headers['x-tenant'], request.text()]).sort()
  expect(sent).toEqual([
    ['team-a', '1\n3\n'],
    ['team-b', '2\n'],
  ])
  expect(destination.requests[0]?.headers).toMatchObject({ 'x-fixed': '100% %F', 'content-type': 'text/own' })
  expect(sink.events.errors).toContainEqual(
    expect.objectContaining({
      type: 'template_failed',
      fields: expect.objectContaining({ missing: expect.anything() }),
    }),
  )
})

test('a header with a template that is not valid is a problem', () => {
  const options = { uri: 'http://x', encoding: { codec: 'text' }, request: { headers: { 'X-A': '{{ a..b }}' } } }
  expect(problemsOf('sink', 'http', options)).toEqual([expect.objectContaining({ path: 'request.headers.X-A' })])
})

test('discards events with an invalid address', async () => {
  await using sink = await startSink('http', { uri: 'http://{{ host }}:x/', encoding: { codec: 'text' } })
  expect(await sink.deliver([log({ host: 'h', message: 'm' })])).toBe('rejected')
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test('a full sink makes its source wait until a slot is free', async () => {
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  await using destination = await fakeDestination('hang')
  await using sink = await startSink('http', {
    uri: destination.url,
    encoding: { codec: 'text' },
    batch: { max_events: 1 },
    request: { timeout_secs: 1, retry_attempts: 0 },
  })
  let outcomes = 0
  void sink.write([log({ message: 'in flight' })]).then(() => outcomes++)
  void sink.write([log({ message: 'waits' })]).then(() => {
    outcomes++
    release()
  })
  await destination.received(1)
  expect(outcomes).toBe(0)
  await held // each times out after a second, so the second one started when the first one ended
  expect(destination.requests.map((request) => request.text())).toEqual(['in flight\n', 'waits\n'])
})

test('several connections carry as many requests as the concurrency allows', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('http', {
    uri: destination.url,
    encoding: { codec: 'text' },
    batch: { max_events: 1 },
    request: { concurrency: 3 },
  })
  expect(await sink.deliver(Array.from({ length: 30 }, (_, n) => log({ message: String(n) })))).toBe('delivered')
  expect(destination.requests).toHaveLength(30)
  expect(destination.connections).toBeGreaterThan(1)
  expect(destination.connections).toBeLessThanOrEqual(3)
})

test('the health check requests the configured address', async () => {
  await using destination = await fakeDestination(200, 404)
  await using sink = await startSink('http', {
    uri: destination.url,
    encoding: { codec: 'text' },
    healthcheck: { uri: `${destination.url}/health` },
  })
  await sink.sink.healthcheck?.(AbortSignal.timeout(5000))
  await expect(sink.sink.healthcheck?.(AbortSignal.timeout(5000))).rejects.toMatchObject({ code: 'PEN_HEALTHCHECK' })
  expect(destination.requests.map(({ path }) => path)).toEqual(['/health', '/health'])
})

test('the adaptive limit is reported and lets more requests through', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('http', {
    uri: destination.url,
    encoding: { codec: 'text' },
    batch: { max_events: 1 },
    request: { concurrency: 'adaptive', adaptive_concurrency: { initial_concurrency: 4 } },
  })
  expect(sink.events.gauges.get('adaptive_concurrency_limit')).toBe(4)
  expect(await sink.deliver(Array.from({ length: 40 }, (_, n) => log({ message: String(n) })))).toBe('delivered')
  expect(destination.requests).toHaveLength(40)
  expect(destination.connections).toBeGreaterThan(1)
  expect(sink.events.counts.get('adaptive_concurrency_observed_rtt')).toBe(40)
  expect(sink.events.gauges.get('adaptive_concurrency_limit')).toBeGreaterThanOrEqual(1)
})

test('a framing without its delimiter is an invalid option', () => {
  const given = { uri: 'http://localhost', encoding: { codec: 'text' }, framing: { method: 'character_delimited' } }
  expect(problemsOf('sink', 'http', given)).toEqual([
    {
      path: 'framing.character_delimited.delimiter',
      message: '`delimiter` is required with method `character_delimited`',
    },
  ])
})

test('an address without TLS is refused where TLS is required', async () => {
  const options = { uri: 'http://user:secret@localhost:80/x', encoding: { codec: 'text' }, tls: { enabled: true } }
  await expect(startSink('http', options)).rejects.toThrow(
    '`tls.enabled` is true, but the scheme of http://localhost is not https.',
  )
})
