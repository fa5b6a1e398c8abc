import { expect, test, vi } from 'vitest'
import { MetricEvent } from '../event/metric.ts'
import { findComponent } from '../registry.ts'
import { parseOptions } from '../schema/validate.ts'
import { type Answer, fakeDestination, type RecordedRequest } from '../testing/destination.ts'
import { at, log } from '../testing/events.ts'
import { problemsOf, startSink, testGlobals } from '../testing/harness.ts'

const well: Answer = { status: 200, body: '{"took":1,"errors":false,"items":[]}' }
const stamp = '2026-01-01T00:00:00Z'

/** A response to a bulk request with these statuses. */
const items = (action: string, ...statuses: number[]): Answer => ({
  status: 200,
  body: JSON.stringify({
    took: 1,
    errors: statuses.some((status) => status >= 300),
    items: statuses.map((status) => ({
      [action]: status < 300 ? { status } : { status, error: { type: 'some_exception', reason: 'for a reason' } },
    })),
  }),
})

const ids = (request: RecordedRequest) =>
  (request.lines() as { message?: string }[]).flatMap(({ message }) => message ?? [])

const events = (...messages: string[]) => messages.map((message) => log({ message, timestamp: stamp }))

const discarded = 'component_discarded_events_total intentional=false'

test('events become documents of a daily index', async () => {
  await using destination = await fakeDestination(well)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    id_key: 'meta.id',
    pipeline: 'p 1',
    query: { pipeline: 'mine', x: 'y' },
  })

  const status = await sink.deliver([
    log({ message: 'a', timestamp: stamp, meta: { id: 'one', k: 1 } }),
    log({ message: 'b', timestamp: stamp, meta: { id: 2 } }),
    log({ message: 'c', timestamp: stamp, meta: { id: ['x'] } }),
  ])

  expect(status).toBe('delivered')
  expect(destination.requests[0]?.path).toBe('/_bulk?pipeline=p+1&x=y&timeout=60s')
  expect(destination.requests[0]?.text()).toBe(
    '{"index":{"_index":"penstock-2026.01.01","_id":"one"}}\n' +
      '{"message":"a","meta":{"k":1},"timestamp":"2026-01-01T00:00:00Z"}\n' +
      '{"index":{"_index":"penstock-2026.01.01","_id":"2"}}\n' +
      '{"message":"b","meta":{},"timestamp":"2026-01-01T00:00:00Z"}\n' +
      '{"index":{"_index":"penstock-2026.01.01"}}\n' +
      '{"message":"c","meta":{"id":["x"]},"timestamp":"2026-01-01T00:00:00Z"}\n',
  )
})

test('each document names its own ingest pipeline, unless it is empty', async () => {
  await using destination = await fakeDestination(well)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    id_key: 'id',
    bulk: { index: 'a', pipeline: '{{ %pipeline }}' },
  })
  const named = (pipeline: string | undefined, fields: object) => {
    const event = log({ message: 'm', ...fields })
    event.metadata = { value: pipeline === undefined ? {} : { pipeline }, secrets: {} }
    return event
  }

  await sink.deliver([named('p', {}), named('q', {}), named('q', { id: 'one' }), named('', {}), named(undefined, {})])

  const actions = destination.requests[0]?.lines().filter((_, index) => index % 2 === 0)
  expect(actions).toEqual([
    { index: { _index: 'a', pipeline: 'p' } },
    { index: { _index: 'a', pipeline: 'q' } },
    { index: { _index: 'a', _id: 'one', pipeline: 'q' } },
    { index: { _index: 'a' } },
  ])
  expect(sink.events.counts.get(discarded)).toBe(1)
})

test('an id in metadata leaves the fields as they are', async () => {
  await using destination = await fakeDestination(well)
  const options = { endpoints: [destination.url], api_version: 'v8', id_key: '%meta.id', bulk: { index: 'a' } }
  await using sink = await startSink('search_engine', options)
  const event = log({ message: 'a', meta: { id: 'kept' } })
  event.metadata = { value: { meta: { id: 'one' } }, secrets: {} }

  expect(await sink.deliver([event])).toBe('delivered')
  expect(destination.requests[0]?.text()).toBe(
    '{"index":{"_index":"a","_id":"one"}}\n{"message":"a","meta":{"id":"kept"}}\n',
  )
})

test('long index names result in more requests, not longer ones', async () => {
  await using destination = await fakeDestination(well)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    bulk: { index: `{{ k }}${'x'.repeat(50_000)}` },
    batch: { max_bytes: 1_000_000 },
  })

  expect(await sink.deliver(Array.from({ length: 300 }, (_, k) => log({ k, timestamp: stamp })))).toBe('delivered')
  expect(destination.requests.length).toBeGreaterThan(3)
  for (const { body } of destination.requests) expect(body.length).toBeLessThan(5 << 20)
})

test('a metric without a time takes it from its tag, in the zone of the metrics', async () => {
  await using destination = await fakeDestination(well)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    metrics: { timezone: 'Europe/Berlin' },
  })
  const timeless = new MetricEvent({
    name: 'up',
    kind: 'absolute',
    value: { type: 'gauge', value: 1 },
    tags: new Map([
      ['timestamp', '2026-01-02 00:30:00'],
      ['host', 'h1'],
    ]),
  })

  await sink.deliver([timeless])

  const [action, document] = (destination.requests[0]?.text() ?? '')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(action.index._index).toBe('penstock-2026.01.01')
  expect(document).toMatchObject({ timestamp: '2026-01-01T23:30:00Z', tags: { host: 'h1' } })
})

test('only documents that may succeed later are sent again', async () => {
  await using destination = await fakeDestination(
    items('create', 201, 429, 400, 503),
    items('create', 409, 503), // the first attempt had written this document
    well,
  )
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    mode: 'data_stream',
  })

  expect(await sink.deliver(events('a', 'b', 'c', 'd'))).toBe('rejected')

  expect(destination.requests.map(ids)).toEqual([['a', 'b', 'c', 'd'], ['b', 'd'], ['d']])
  expect(sink.events.counts.get('component_sent_events_total')).toBe(3)
  expect(sink.events.counts.get(discarded)).toBe(1)
  expect(sink.events.errors[0]).toMatchObject({
    type: 'request_failed',
    fields: { error_type: 'some_exception', reason: 'for a reason' },
  })
})

test('the log line about a discarded document shows its own error, although others are retried', async () => {
  const error = (status: number, type: string) => ({ index: { status, error: { type, reason: `of ${type}` } } })
  const answer = { body: JSON.stringify({ errors: true, items: [error(400, 'mapper'), error(429, 'busy')] }) }
  await using destination = await fakeDestination(answer, items('index', 201))
  await using sink = await startSink('search_engine', { endpoints: [destination.url], api_version: 'v8' })

  expect(await sink.deliver(events('a', 'b'))).toBe('rejected')

  expect(destination.requests).toHaveLength(2)
  expect(sink.events.errors.find(({ fields }) => fields?.['retry'] === undefined)).toMatchObject({
    fields: { item_status: 400, error_type: 'mapper', reason: 'of mapper' },
  })
})

test.each<{ what: string; options: object; answer: Answer; sent: number | undefined; lost: number | undefined }>([
  {
    what: 'retries are off',
    options: { request_retry_partial: false },
    answer: items('index', 201, 429),
    sent: 1,
    lost: 1,
  },
  { what: 'nothing may succeed later', options: {}, answer: items('index', 400, 404), sent: undefined, lost: 2 },
  { what: 'a document is there already', options: {}, answer: items('create', 409, 201), sent: 1, lost: 1 },
])('documents end at once when $what', async ({ options, answer, sent, lost }) => {
  await using destination = await fakeDestination(answer)
  await using sink = await startSink('search_engine', { endpoints: [destination.url], api_version: 'v8', ...options })

  expect(await sink.deliver(events('a', 'b'))).toBe('rejected')

  expect(destination.requests).toHaveLength(1)
  expect(sink.events.counts.get('component_sent_events_total')).toBe(sent)
  expect(sink.events.counts.get(discarded)).toBe(lost)
})

test.each<{ what: string; answer: Answer; options?: object; typed: boolean }>([
  { what: 'version 6', answer: { body: '{"version":{"number":"6.8.23"}}' }, typed: true },
  { what: 'version 7', answer: { body: '{"version":{"number":"7.17.1"}}' }, typed: false },
  {
    what: 'OpenSearch 2',
    answer: { body: '{"version":{"distribution":"opensearch","number":"2.11.0"}}' },
    typed: false,
  },
  { what: 'no version', answer: { body: 'hello' }, typed: false },
  { what: 'an error', answer: 500, typed: false },
])('a destination that answers with $what', async ({ answer, typed }) => {
  await using destination = await fakeDestination(answer, well)
  await using sink = await startSink('search_engine', { endpoints: [destination.url] })

  expect(await sink.deliver(events('a'))).toBe('delivered')

  expect(destination.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /',
    'POST /_bulk?timeout=60s',
  ])
  const type = typed ? { _type: '_doc' } : {}
  expect(destination.requests[1]?.lines()[0]).toEqual({ index: { _index: 'penstock-2026.01.01', ...type } })
})

test('the event selects the data stream, and gets the missing fields', async () => {
  await using destination = await fakeDestination(well)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    mode: 'data_stream',
    data_stream: { dataset: '{{ app }}' },
  })

  const status = await sink.deliver([
    log({ app: 'web', timestamp: stamp }),
    log({ app: 'web', timestamp: stamp, data_stream: { dataset: 'own', more: 1 } }),
    log({ message: 'no app', timestamp: stamp }),
  ])

  expect(status).toBe('rejected')
  expect(destination.requests[0]?.lines()).toEqual([
    { create: { _index: 'logs-web-default' } },
    { '@timestamp': stamp, app: 'web', data_stream: { type: 'logs', dataset: 'web', namespace: 'default' } },
    { create: { _index: 'logs-own-default' } },
    { '@timestamp': stamp, app: 'web', data_stream: { type: 'logs', dataset: 'own', namespace: 'default', more: 1 } },
  ])
  expect(sink.events.errors).toEqual([expect.objectContaining({ type: 'template_failed' })])
  expect(sink.events.counts.get(discarded)).toBe(1)
})

test('metric events become documents with a host', async () => {
  await using destination = await fakeDestination(well)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    metrics: { host_tag: 'node' },
  })

  await sink.deliver([
    new MetricEvent({
      name: 'requests',
      namespace: 'app',
      kind: 'incremental',
      value: { type: 'counter', value: 3 },
      timestamp: at(stamp),
      tags: new Map([
        ['node', 'n1'],
        ['code', '200'],
      ]),
    }),
  ])

  expect(destination.requests[0]?.text().split('\n')[1]).toBe(
    '{"counter":{"value":3.0},"host":"n1","kind":"incremental","name":"requests","namespace":"app","tags":{"code":"200"},"timestamp":"2026-01-01T00:00:00Z"}',
  )
})

test('a failing endpoint is skipped', async () => {
  await using broken = await fakeDestination(500)
  await using fine = await fakeDestination(well)
  await using sink = await startSink('search_engine', {
    endpoints: [broken.url, fine.url],
    api_version: 'v8',
    batch: { max_events: 1 },
    request: { concurrency: 4 },
  })

  expect(await sink.deliver(events('a', 'b', 'c', 'd', 'e', 'f'))).toBe('delivered')

  expect(fine.requests.flatMap(ids).sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
})

test.each<{ answer: Answer; healthy: boolean }>([
  { answer: 200, healthy: true },
  { answer: 503, healthy: false },
])('the health check queries the cluster: $answer', async ({ answer, healthy }) => {
  await using destination = await fakeDestination(answer)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    auth: { strategy: 'basic', user: 'u', password: 'p' },
  })
  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (healthy) await check
  else await expect(check).rejects.toMatchObject({ code: 'PEN_HEALTHCHECK' })

  expect(destination.requests[0]?.path).toBe('/_cluster/health')
  expect(destination.requests[0]?.headers.authorization).toBe('Basic dTpw')
})

test('requests are signed for AWS', async () => {
  await using destination = await fakeDestination(well)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    compression: 'gzip',
    auth: { strategy: 'aws', access_key_id: 'AKID', secret_access_key: 'secret' },
    aws: { region: 'eu-west-1' },
  })

  expect(await sink.deliver(events('a'))).toBe('delivered')

  const { headers } = destination.requests[0] as RecordedRequest
  expect(headers.authorization).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-west-1\/es\/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=[0-9a-f]{64}$/,
  )
})

test.each([
  { options: {}, message: 'Endpoints option must be specified' },
  {
    options: { endpoint: 'http://a', endpoints: ['http://b'] },
    message: '`endpoint` and `endpoints` options are mutually exclusive. Please use `endpoints` option.',
  },
  {
    options: { endpoints: ['http://u:p@a'], auth: { strategy: 'basic', user: 'u', password: 'p' } },
    message: 'Two authorization credentials was provided.',
  },
  {
    options: { endpoints: ['http://a'], bulk: { action: 'delete' } },
    message: 'must be `index` or `create`, found "delete"',
  },
])('options are checked: $message', ({ options, message }) => {
  const declaration = findComponent('sink', 'elasticsearch')
  if (declaration === undefined) throw new Error('The alias is missing.')
  const parsed = parseOptions(declaration.options, options)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  const problems = declaration.check?.(parsed.value, testGlobals('/tmp')) ?? []
  expect(problems.map((problem) => problem.message)).toContain(message)
})

test('signing without a region is reported when the sink is built, and the environment may give the address', async () => {
  for (const name of ['CLOUD_REGION', 'CLOUD_DEFAULT_REGION', 'AWS_REGION', 'AWS_DEFAULT_REGION']) vi.stubEnv(name, '')
  vi.stubEnv('HOME', '/nonexistent')
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  const auth = { strategy: 'aws', access_key_id: 'a', secret_access_key: 'b' }
  await expect(startSink('search_engine', { endpoints: ['http://a'], auth })).rejects.toThrow(
    'aws.region required when AWS authentication is in use',
  )
  await using destination = await fakeDestination(well)
  vi.stubEnv('AWS_ENDPOINT_URL', destination.url)
  {
    await using sink = await startSink('search_engine', { api_version: 'v8', auth, aws: { region: 'eu-west-1' } })
    expect(await sink.deliver([log({ message: 'a' })])).toBe('delivered')
  }
  vi.unstubAllEnvs()
  expect(destination.requests[0]?.headers['authorization']).toContain('/eu-west-1/es/aws4_request')
})

test.each<{ what: string; answer: Answer }>([
  { what: 'a page', answer: { headers: { 'content-type': 'text/html' }, body: '<html>Sign on</html>' } },
  { what: 'errors without items', answer: { body: '{"errors":true}' } },
  { what: 'fewer items than documents', answer: { body: '{"errors":true,"items":[{"index":{"status":400}}]}' } },
  { what: 'items of a wrong type', answer: { body: '{"errors":true,"items":[1,{"index":{}}]}' } },
  { what: 'half of an answer', answer: { body: '{"took":1,"errors":true,"items":[{"index":{"sta' } },
])('a malformed response, $what, does not count as delivery, and the request is retried', async ({ answer }) => {
  await using destination = await fakeDestination(answer, well)
  await using sink = await startSink('search_engine', { endpoints: [destination.url], api_version: 'v8' })

  expect(await sink.deliver(events('a', 'b'))).toBe('delivered')

  expect(destination.requests.map(ids)).toEqual([
    ['a', 'b'],
    ['a', 'b'],
  ])
  expect(sink.events.counts.get('component_sent_events_total')).toBe(2)
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBeUndefined()
  expect(sink.events.errors).toMatchObject([{ type: 'request_failed', level: 'warn' }])
})

test('temporary credentials reported as expired are looked up again; other requests are not retried', async () => {
  const ended = { status: 403, body: '{"message":"The security token included in the request is expired"}' }
  const keys = (id: string) => ({ body: JSON.stringify({ AccessKeyId: id, SecretAccessKey: 's', Token: 't' }) })
  await using container = await fakeDestination(keys('first'), keys('second'))
  await using destination = await fakeDestination((request) =>
    request.headers.authorization?.includes('Credential=second/') === true ? well : ended,
  )
  const options = { endpoints: [destination.url], api_version: 'v8', aws: { region: 'eu-west-1' } }
  for (const name of ['CLOUD_ACCESS_KEY_ID', 'AWS_ACCESS_KEY_ID']) vi.stubEnv(name, undefined)
  vi.stubEnv('HOME', '/nonexistent')
  vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', container.url)
  try {
    await using sink = await startSink('search_engine', { ...options, auth: { strategy: 'aws' } })
    expect(await sink.deliver(events('a'))).toBe('delivered')
    expect(destination.requests).toHaveLength(2)
    expect(container.requests).toHaveLength(2)
  } finally {
    vi.unstubAllEnvs()
  }

  const fixed = { strategy: 'aws', access_key_id: 'AKID', secret_access_key: 'secret', session_token: 't' }
  await using sink = await startSink('search_engine', { ...options, auth: fixed, request: { auth_grace_secs: 0 } })
  expect(await sink.deliver(events('a'))).toBe('rejected')
  expect(destination.requests).toHaveLength(3)
})

test('a signed request that arrived too late is retried', async () => {
  await using destination = await fakeDestination({ status: 403, body: '{"message":"RequestExpired"}' }, well)
  await using sink = await startSink('search_engine', {
    endpoints: [destination.url],
    api_version: 'v8',
    auth: { strategy: 'aws', access_key_id: 'AKID', secret_access_key: 'secret' },
    aws: { region: 'eu-west-1' },
  })
  expect(await sink.deliver(events('a'))).toBe('delivered')
  expect(destination.requests).toHaveLength(2)
})

test.each([
  [{ endpoints: ['http://a'], aws: { endpoint: 'http://b' } }, 'aws.endpoint'],
  [{ endpoint: 'http://a', aws: { endpoint: 'http://b' } }, 'aws.endpoint'],
  [{ endpoints: ['http://a'], metrics: { timezone: 'Mars/Phobos' } }, 'metrics.timezone'],
  [
    { endpoints: ['http://a'], aws: { region: 'x' }, auth: { strategy: 'aws', access_key_id: 'k' } },
    'auth.access_key_id',
  ],
  [{ endpoints: ['http://a'], aws: { region: 'x' }, auth: { strategy: 'aws', external_id: 'k' } }, 'auth.external_id'],
])('%j has a problem at %s', (given, path) => {
  expect(problemsOf('sink', 'search_engine', given).map((problem) => problem.path)).toEqual([path])
})
