import { expect, test } from 'vitest'
import type { MetricEvent } from '../event/metric.ts'
import { fakeDestination } from '../testing/destination.ts'
import { problemsOf, startSource, type TestSource } from '../testing/harness.ts'
import { statedMetrics } from '../testing/requirements/stated-options.ts'

const stats = {
  proc: {
    startTime: '2026-01-01T00:00:00Z',
    id: 4242,
    mem: 1000,
    cpu: 0.1,
    threadsCount: 9,
    thrownExceptionsRate: 0,
    diskIo: { readBytes: 1, writtenBytes: 2, readOps: 3, writeOps: 4 },
  },
  sys: {
    freeMem: 500,
    loadavg: { '1m': 0, '5m': 0, '15m': 0 },
    drive: {
      '/var/lib/es': { availableBytes: 7, totalBytes: 10, usage: '30%', usedBytes: 3 },
      '/index': { availableBytes: 70, totalBytes: 100, usage: 30, usedBytes: 30 },
    },
  },
  es: { queue: {} },
}

const shown = (source: TestSource) =>
  (source.sent as MetricEvent[]).map(({ namespace, name, tags, value }) => {
    const labels = [...(tags ?? [])].map((pair) => pair.join('=')).join(',')
    return `${namespace}_${name}{${labels}} ${value.type} ${'value' in value ? value.value : undefined}`
  })

test('the statistics become metrics, including those of every drive', async () => {
  await using server = await fakeDestination({ body: JSON.stringify(stats) })
  await using source = await startSource('eventstore_metrics', { endpoint: `${server.url}/stats` })
  await source.received(12)
  expect(shown(source)).toEqual([
    'eventstoredb_process_memory_used_bytes{id=4242} gauge 1000',
    'eventstoredb_disk_read_bytes_total{id=4242} counter 1',
    'eventstoredb_disk_written_bytes_total{id=4242} counter 2',
    'eventstoredb_disk_read_ops_total{id=4242} counter 3',
    'eventstoredb_disk_write_ops_total{id=4242} counter 4',
    'eventstoredb_memory_free_bytes{id=4242} gauge 500',
    'eventstoredb_disk_total_bytes{id=4242,path=/var/lib/es} gauge 10',
    'eventstoredb_disk_free_bytes{id=4242,path=/var/lib/es} gauge 7',
    'eventstoredb_disk_used_bytes{id=4242,path=/var/lib/es} gauge 3',
    'eventstoredb_disk_total_bytes{id=4242,path=/index} gauge 100',
    'eventstoredb_disk_free_bytes{id=4242,path=/index} gauge 70',
    'eventstoredb_disk_used_bytes{id=4242,path=/index} gauge 30',
  ])
  const kinds = (source.sent as MetricEvent[]).map(({ name, value }) => `${name} ${value.type}`)
  expect([...new Set(kinds)].toSorted()).toEqual(statedMetrics('eventstore_metrics'))
  expect((source.sent as MetricEvent[])[0]).toMatchObject({ kind: 'absolute', timestamp: expect.anything() })
  expect(server.requests[0]).toMatchObject({ method: 'GET', path: '/stats' })
  expect(server.requests[0]?.headers).toMatchObject({ accept: 'application/json', 'content-type': 'application/json' })
})

test('omits absent values, and recovers after a bad tick', async () => {
  await using server = await fakeDestination(
    { body: 'no JSON' },
    { status: 503, body: JSON.stringify(stats) },
    { body: JSON.stringify({ proc: { id: 7, mem: 'much' }, sys: { freeMem: 5, drive: null } }) },
  )
  await using source = await startSource('eventstore_metrics', {
    endpoint: server.url,
    default_namespace: 'es',
    scrape_interval_secs: 1,
  })
  await source.received(1)
  expect(shown(source)).toEqual(['es_memory_free_bytes{id=7} gauge 5'])
  expect(source.events.counts.get('parse_errors_total')).toBe(2)
  expect(source.events.counts.get('http_error_response_total')).toBe(1)
  expect(source.events.errors).toEqual([
    expect.objectContaining({ type: 'parser_failed', stage: 'processing' }),
    expect.objectContaining({ type: 'request_failed', stage: 'receiving', code: 'http_response_503' }),
    expect.objectContaining({ type: 'parser_failed', stage: 'processing' }),
  ])
})

test('several nodes differ by address, and a slow node delays no other', async () => {
  await using slow = await fakeDestination('hang')
  await using one = await fakeDestination({ body: '{"proc":{"id":1,"mem":10}}' })
  await using other = await fakeDestination({ body: '{"proc":{"id":1,"mem":20}}' })
  const withUser = one.url.replace('://', '://user:s3cret@')
  await using source = await startSource('eventstore_metrics', {
    endpoints: [`${slow.url}/stats`, `${withUser}/stats`, `${other.url}/stats`],
    scrape_interval_secs: 1,
  })
  await source.received(4)

  expect(new Set(shown(source))).toEqual(
    new Set([
      `eventstoredb_process_memory_used_bytes{endpoint=${one.url}/stats,id=1} gauge 10`,
      `eventstoredb_process_memory_used_bytes{endpoint=${other.url}/stats,id=1} gauge 20`,
    ]),
  )
  expect(slow.requests).toHaveLength(1)
  expect(one.requests[0]?.headers.authorization).toBe(`Basic ${btoa('user:s3cret')}`)
})

test('addresses can be given in only one way', () => {
  const given = { endpoint: 'http://a/stats', endpoints: ['http://b/stats'] }
  expect(problemsOf('source', 'eventstore_metrics', given)).toMatchObject([{ path: 'endpoints' }])
  expect(problemsOf('source', 'eventstore_metrics', { endpoints: ['http://b/stats'] })).toEqual([])
})

test('after hostile answers the source continues', async () => {
  const bodies = [
    '['.repeat(9 << 20),
    `${'['.repeat(1 << 20)}${']'.repeat(1 << 20)}`,
    '{"proc":[],"sys":"x"}',
    '{"proc":{"id":{},"mem":1e999,"diskIo":{"readBytes":-1e999}}}',
    '{"proc":{"__proto__":{"mem":1}},"sys":{"drive":{"constructor":1}}}',
    Buffer.from('{"proc":{"mem":1}}', 'utf16le').toString('latin1'),
  ]
  const asked = new Set<string>()
  await using server = await fakeDestination(({ path }) => {
    if (asked.has(path)) return { body: '{"proc":{"id":1,"mem":10}}' }
    asked.add(path)
    return { body: bodies[Number(path.slice(1))] ?? '' }
  })
  const endpoints = bodies.map((_, index) => `${server.url}/${index}`)
  await using source = await startSource('eventstore_metrics', { endpoints, scrape_interval_secs: 1 })
  await source.received(bodies.length)
  expect(new Set(shown(source))).toEqual(
    new Set(endpoints.map((url) => `eventstoredb_process_memory_used_bytes{endpoint=${url},id=1} gauge 10`)),
  )
  expect(source.events.counts.get('parse_errors_total')).toBeGreaterThanOrEqual(4)
  expect(source.events.errors.every(({ type }) => type === 'parser_failed')).toBe(true)
})
