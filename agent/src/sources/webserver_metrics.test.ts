import { expect, test } from 'vitest'
import type { MetricEvent } from '../event/metric.ts'
import { type Answer, fakeDestination } from '../testing/destination.ts'
import { freePort } from '../testing/free-port.ts'
import { startSource, type TestSource } from '../testing/harness.ts'
import { statedMetrics } from '../testing/requirements/stated-options.ts'

const page = `localhost
ServerVersion: Apache/2.4.57 (Unix)
Total Accesses: 30
Total kBytes: 217
Total Duration: 11
ServerUptimeSeconds: 43
CPUUser: .2
CPUSystem: .02
CPUChildrenUser: 0
CPUChildrenSystem: 1.5e-3
CPULoad: .025
IdleWorkers: 74
BusyWorkers: 1
ConnsTotal: 1
ConnsAsyncWriting: 2
ConnsAsyncKeepAlive: 3
ConnsAsyncClosing: 4
Scoreboard: ___SRWKDCLGI..?
`

/** Metrics as lines of name, state, type and value. */
const shown = (source: TestSource) =>
  (source.sent as MetricEvent[]).map(({ namespace, name, tags, value }) => {
    const state = tags?.get('state')
    const number = 'value' in value ? value.value : undefined
    return `${namespace}_${name}${state === undefined ? '' : `{${state}}`} ${value.type} ${number}`
  })

test('every value of the page becomes a metric', async () => {
  await using server = await fakeDestination({ body: page })
  const address = `${server.url.replace('//', '//user:s3cret@')}/server-status?auto`
  await using source = await startSource('webserver_metrics', { endpoints: [address] })
  await source.received(27)
  expect(shown(source)).toEqual([
    'apache_up gauge 1',
    'apache_access_total counter 30',
    'apache_sent_bytes_total counter 222208',
    'apache_duration_seconds_total counter 0.011',
    'apache_uptime_seconds_total counter 43',
    'apache_cpu_seconds_total{user} counter 0.2',
    'apache_cpu_seconds_total{system} counter 0.02',
    'apache_cpu_seconds_total{children_user} counter 0',
    'apache_cpu_seconds_total{children_system} counter 0.0015',
    'apache_cpu_load gauge 0.025',
    'apache_workers{idle} gauge 74',
    'apache_workers{busy} gauge 1',
    'apache_connections{total} gauge 1',
    'apache_connections{writing} gauge 2',
    'apache_connections{keepalive} gauge 3',
    'apache_connections{closing} gauge 4',
    'apache_scoreboard{waiting} gauge 3',
    'apache_scoreboard{starting} gauge 1',
    'apache_scoreboard{reading} gauge 1',
    'apache_scoreboard{sending} gauge 1',
    'apache_scoreboard{keepalive} gauge 1',
    'apache_scoreboard{dnslookup} gauge 1',
    'apache_scoreboard{closing} gauge 1',
    'apache_scoreboard{logging} gauge 1',
    'apache_scoreboard{finishing} gauge 1',
    'apache_scoreboard{idle_cleanup} gauge 1',
    'apache_scoreboard{open} gauge 2',
  ])
  const kinds = (source.sent as MetricEvent[]).map(
    ({ name, value, tags }) => `${name} ${value.type}${tags?.has('state') === true ? ' state' : ''}`,
  )
  expect([...new Set(kinds)].toSorted()).toEqual(statedMetrics('webserver_metrics'))
  const [up] = source.sent as MetricEvent[]
  expect(up).toMatchObject({ kind: 'absolute', timestamp: expect.anything() })
  expect([...(up?.tags ?? [])]).toEqual([
    ['endpoint', `${server.url}/server-status?auto`],
    ['host', server.host],
  ])
  expect(server.requests[0]).toMatchObject({ method: 'GET', path: '/server-status?auto' })
  expect(server.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from('user:s3cret').toString('base64')}`)
  expect(source.events.counts.get('component_received_bytes_total')).toBe(page.length)
})

test('without a namespace, names have no prefix', async () => {
  await using server = await fakeDestination({ body: 'Total Accesses: 1\n' })
  await using source = await startSource('webserver_metrics', { endpoints: [server.url], namespace: '' })
  await source.received(2)
  expect((source.sent as MetricEvent[])[1]).toMatchObject({ name: 'access_total', namespace: undefined })
})

test('an invalid value is counted, and the others are used', async () => {
  await using server = await fakeDestination({ body: 'Total Accesses: many\nBusyWorkers: 3\nnonsense\n' })
  await using source = await startSource('webserver_metrics', { endpoints: [server.url] })
  await source.received(2)
  expect(shown(source)).toEqual(['apache_up gauge 1', 'apache_workers{busy} gauge 3'])
  expect(source.events.counts.get('parse_errors_total')).toBe(1)
  expect(source.events.errors).toEqual([
    expect.objectContaining({ type: 'parser_failed', stage: 'processing', tags: { endpoint: server.url } }),
  ])
})

test('another status is an error, but the server counts as up', async () => {
  await using server = await fakeDestination({ status: 404, body: page })
  await using source = await startSource('webserver_metrics', { endpoints: [server.url] })
  await source.received(1)
  await source.stop()
  expect(shown(source)).toEqual(['apache_up gauge 1'])
  expect(source.events.counts.get('http_error_response_total')).toBe(1)
  expect(source.events.errors[0]).toMatchObject({
    code: 'http_response_404',
    type: 'request_failed',
    stage: 'receiving',
  })
})

test.each<[string, Answer | undefined]>([
  ['nothing listens', undefined],
  ['the connection breaks', 'reset'],
  ['the response is not HTTP', 'garbage'],
  ['there is no answer in time', 'hang'],
  ['the answer does not end in time', 'stall'],
  ['the answer breaks off', 'break'],
])('a server counts as down when %s', async (_name, answer) => {
  await using server = await fakeDestination(answer ?? 200)
  const url = answer === undefined ? `http://127.0.0.1:${await freePort()}/` : server.url
  await using source = await startSource('webserver_metrics', { endpoints: [url], scrape_timeout_secs: 1 })
  await source.received(1)
  expect(shown(source)).toEqual(['apache_up gauge 0'])
  expect(source.events.counts.get('http_request_errors_total')).toBe(1)
  expect(source.events.errors[0]).toMatchObject({ type: 'request_failed', stage: 'receiving' })
})

test('a slow server delays no other, and is not queried twice at the same time', async () => {
  await using slow = await fakeDestination('hang')
  await using quick = await fakeDestination({ body: 'BusyWorkers: 1\n' })
  await using source = await startSource('webserver_metrics', {
    endpoints: [slow.url, quick.url],
    scrape_interval_secs: 1,
  })
  await quick.received(3)
  expect(slow.requests).toHaveLength(1)
  expect(new Set((source.sent as MetricEvent[]).map(({ tags }) => tags?.get('endpoint')))).toEqual(new Set([quick.url]))
})

test('a full pipeline blocks new values, and a stop ends the wait', async () => {
  await using server = await fakeDestination({ body: 'BusyWorkers: 1\n' })
  await using source = await startSource(
    'webserver_metrics',
    { endpoints: [server.url], scrape_interval_secs: 1 },
    { consume: () => new Promise(() => {}) },
  )
  await source.received(1)
  await source.stop()
  expect(server.requests).toHaveLength(1)
})

test.each([
  ['a line without end', 'x'.repeat(9 << 20)],
  ['nothing but lines', '\n'.repeat(1 << 20)],
  ['another encoding', Buffer.from('BusyWorkers: 1\n', 'utf16le').toString('latin1')],
  ['names of prototypes', '__proto__: 1\nconstructor: 2\n'],
])('a page of %s only shows that the server is up', async (_name, body) => {
  await using server = await fakeDestination({ body })
  await using source = await startSource('webserver_metrics', { endpoints: [server.url] })
  await source.received(1)
  expect(shown(source)).toEqual(['apache_up gauge 1'])
  expect(source.events.counts.get('component_received_bytes_total')).toBeLessThan(9 << 20)
})
