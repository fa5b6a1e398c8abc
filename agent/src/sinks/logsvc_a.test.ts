import { expect, test } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import { fakeDestination } from '../testing/destination.ts'
import { log } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const required = { api_key: 'the-key', hostname: 'h' }

test('sends known attributes next to the line, and all others as meta', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('logsvc_a', { ...required, endpoint: destination.url })

  const status = await sink.deliver([
    log({ message: 'hello', timestamp: '2024-01-02T03:04:05Z', file: '/a.log', user: { id: 7 } }),
    log({ message: 'x', timestamp: '2024-01-02T03:04:05.5Z', app: 'shop', env: 'test' }),
    log({ timestamp: '2024-01-02T03:04:05Z' }),
  ])

  expect(status).toBe('delivered')
  expect(destination.requests).toHaveLength(1)
  const [request] = destination.requests
  expect(request?.json()).toEqual({
    lines: [
      {
        line: 'hello',
        timestamp: '2024-01-02T03:04:05Z',
        file: '/a.log',
        env: 'production',
        meta: { user: { id: 7 } },
      },
      { line: 'x', timestamp: '2024-01-02T03:04:05.500Z', app: 'shop', env: 'test' },
      { line: '', timestamp: '2024-01-02T03:04:05Z', app: 'penstock', env: 'production' },
    ],
  })
  expect(request?.headers).toMatchObject({
    'content-type': 'application/json',
    authorization: `Basic ${Buffer.from('the-key:').toString('base64')}`,
  })
  expect(request?.path).toMatch(/^\/logs\/ingest\?hostname=h&now=\d{13}$/)
})

test('a comma in a field does not create another tag, a configured comma does', async () => {
  await using destination = await fakeDestination()
  const options = { ...required, tags: ['{{ app }}', 'a,b', 'env:{{ env }}'], endpoint: destination.url }
  await using sink = await startSink('logsvc_a', options)

  expect(await sink.deliver([log({ message: 'x', app: 'shop,env:prod', env: 'test,%2C' })])).toBe('delivered')
  const tags = destination.requests.map(({ path }) => new URLSearchParams(path.split('?')[1]).get('tags'))
  expect(tags).toEqual(['shop_env:prod,a,b,env:test_%2C'])
})

test('events of different hosts or tags never share a request', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('logsvc_a', {
    ...required,
    hostname: '{{ host }}',
    tags: ['a', '{{ app }}'],
    mac: 'aa:bb',
    ip: '10.0.0.1',
    default_app: 'mine',
    default_env: 'test',
    encoding: { except_fields: ['host'], timestamp_format: 'unix' },
    endpoint: `${destination.url}/own/path`,
  })
  const timestamp = '2024-01-02T03:04:05Z'

  const status = await sink.deliver([
    log({ message: '1', timestamp, host: 'h 1', app: 'x' }),
    log({ message: '2', timestamp, host: 'h 1', app: 'y' }),
    log({ message: '3', timestamp, host: null, app: 'x' }),
    log({ message: '4', timestamp, host: 'h 1', app: 'x' }),
    log({ message: 'without a host', timestamp, app: 'x' }),
    log({ message: 'without a tag', timestamp, host: 'h 1' }),
  ])

  expect(status).toBe('rejected')
  const sent = destination.requests.map((request) => {
    const [path, query] = request.path.split('?')
    const { now: _, ...rest } = Object.fromEntries(new URLSearchParams(query))
    return { path, ...rest, ...(request.json() as object) }
  })
  const common = { path: '/own/path', mac: 'aa:bb', ip: '10.0.0.1' }
  const line = (text: string, app: string) => ({ line: text, timestamp: 1704164645, app, env: 'test' })
  expect(sent).toHaveLength(3)
  expect(sent).toEqual(
    expect.arrayContaining([
      { ...common, hostname: 'h 1', tags: 'a,x', lines: [line('1', 'x'), line('4', 'x')] },
      { ...common, hostname: 'h 1', tags: 'a,y', lines: [line('2', 'y')] },
      { ...common, hostname: '<null>', tags: 'a,x', lines: [line('3', 'x')] },
    ]),
  )
  expect(sink.events.errors.map(({ type, fields }) => [type, fields?.['field']])).toEqual([
    ['template_failed', 'hostname'],
    ['template_failed', 'tags'],
  ])
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
})

test('an event without a timestamp gets the current time, in the configured format', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('logsvc_a', {
    ...required,
    endpoint: destination.url,
    encoding: { timestamp_format: 'unix_ms' },
  })
  const before = Date.now()

  await sink.deliver([log({ message: 'm' })])

  const sent = destination.requests[0]?.json() as { lines: { timestamp: number }[] } | undefined
  expect(sent?.lines[0]?.timestamp).toBeGreaterThanOrEqual(before)
  expect(sent?.lines[0]?.timestamp).toBeLessThanOrEqual(Date.now())
})

test('the older type uses its texts unchanged', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('logdna', {
    api_key: 'k',
    hostname: '{{ host }}',
    tags: ['{{ app }}'],
    endpoint: destination.url,
  })

  expect(await sink.deliver([log({ message: 'm', timestamp: '2024-01-02T03:04:05Z' })])).toBe('delivered')

  const query = new URLSearchParams(destination.requests[0]?.path.split('?')[1])
  expect(query.get('hostname')).toBe('{{ host }}')
  expect(query.get('tags')).toBe('{{ app }}')
})

test.each([
  { status: 200, problem: undefined },
  { status: 400, problem: '/logs/ingest responded with status 400.' },
  { status: 401, problem: '/logs/ingest responded with status 401.' },
  { status: 404, problem: '/logs/ingest responded with status 404.' },
  { status: 403, problem: 'Token is not valid, 403 returned.' },
  { status: 500, problem: 'Server returned a server error' },
])('the health check after $status', async ({ status, problem }) => {
  await using destination = await fakeDestination(status)
  await using sink = await startSink('logsvc_a', { ...required, endpoint: destination.url })

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (problem === undefined) await check
  else await expect(check).rejects.toThrow(problem)
  expect(destination.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /logs/ingest',
    ...(status === 400 ? ['POST /logs/ingest?hostname=penstock'] : []),
  ])
  expect(destination.requests[0]?.headers['authorization']).toMatch(/^Basic /)
})

test.each([
  { endpoint: 'ftp://a', problem: true },
  { endpoint: 'logs.example', problem: false },
  { endpoint: '10.0.0.1:8080', problem: false },
  { endpoint: 'https://logs.example/x', problem: false },
])('the endpoint $endpoint', ({ endpoint, problem }) => {
  expect(problemsOf('sink', 'logsvc_a', { ...required, endpoint })).toEqual(
    problem ? [expect.objectContaining({ path: 'endpoint' })] : [],
  )
})

test.each([
  ['logsvc_a_old', 1],
  ['logdna', 1],
  ['logsvc_a', 0],
])('a configuration with %s has %i hint(s) to use the current name', (type, count) => {
  const loaded = loadConfigObject({
    sources: { in: { type: 'stdin' } },
    sinks: { out: { type, inputs: ['in'], api_key: 'k', hostname: 'h' } },
  })
  const hints = (loaded.ok ? loaded.warnings : []).filter(({ message }) => message.includes('deprecated'))
  expect(hints).toHaveLength(count)
  for (const hint of hints) {
    expect(hint).toMatchObject({ path: 'sinks.out.type', help: expect.stringContaining('`logsvc_a`') })
  }
})

test.each([
  [1, []],
  [1.5, ['`timeout_secs` must be a positive integer, found 1.5']],
])('batch.timeout_secs %j of the older type', (timeout, messages) => {
  const out = { type: 'logsvc_a_old', inputs: ['in'], api_key: 'k', hostname: 'h', batch: { timeout_secs: timeout } }
  const loaded = loadConfigObject({ sources: { in: { type: 'stdin' } }, sinks: { out } })
  expect(
    loaded.ok ? [] : loaded.problems.filter(({ severity }) => severity === 'error').map(({ message }) => message),
  ).toEqual(messages)
})

test.each([
  ['logsvc_a_old', true],
  ['logsvc_a', false],
])('a disk buffer of %s needs no size: %s', (type, valid) => {
  const buffer = { type: 'disk' }
  const loaded = loadConfigObject({
    sources: { in: { type: 'demo_logs', format: 'json' } },
    sinks: { out: { type, inputs: ['in'], api_key: 'k', hostname: 'h', buffer } },
  })
  expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).toEqual(
    valid ? [] : ['missing field `max_size`'],
  )
})
