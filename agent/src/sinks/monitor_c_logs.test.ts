import { expect, test } from 'vitest'
import { fakeDestination } from '../testing/destination.ts'
import { log } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'

const timestamp = '2024-01-02T03:04:05Z'

test('sends bulk requests with the names of the service', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('monitor_c_logs', {
    token: 'tok',
    endpoint: `${destination.url}/?own=1`,
    encoding: { except_fields: ['secret'] },
    request: { timeout_secs: 30 },
  })

  expect(await sink.deliver([log({ message: 'hi', timestamp, host: 'h1', secret: 1 }), log({ message: 'bare' })])).toBe(
    'delivered',
  )

  expect(destination.requests).toHaveLength(1)
  expect(destination.requests[0]).toMatchObject({ method: 'POST', path: '/_bulk?own=1&timeout=30s' })
  expect(destination.requests[0]?.headers['content-type']).toBe('application/x-ndjson')
  expect(destination.requests[0]?.text()).toBe(
    [
      '{"index":{"_index":"tok","_type":"logs"}}',
      `{"@timestamp":"${timestamp}","message":"hi","os.host":"h1"}`,
      '{"index":{"_index":"tok","_type":"logs"}}',
      '{"message":"bare"}',
      '',
    ].join('\n'),
  )
})

test('only the documents rejected within a successful response are discarded', async () => {
  await using destination = await fakeDestination({
    status: 200,
    body: '{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":400,"error":{"type":"t","reason":"no index [tok]"}}}]}',
  })
  await using sink = await startSink('monitor_c_logs', { token: 'tok', endpoint: destination.url })

  expect(await sink.deliver([log({ message: 'a', timestamp }), log({ message: 'b', timestamp })])).toBe('rejected')

  expect(destination.requests).toHaveLength(1)
  expect(sink.events.counts.get('component_sent_events_total')).toBe(1)
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
  // The token is the index name; it must not be logged.
  expect(sink.events.errors.map(({ fields }) => fields?.['reason'])).toEqual(['no index [***]'])
})

test.each([
  { status: 200, problem: undefined },
  { status: 503, problem: 'responded with status 503' },
])('the health check after $status', async ({ status, problem }) => {
  await using destination = await fakeDestination(status)
  await using sink = await startSink('monitor_c_logs', { token: 'tok', endpoint: destination.url })

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (problem === undefined) await check
  else await expect(check).rejects.toThrow(problem)
  expect(destination.requests[0]).toMatchObject({ method: 'GET', path: '/_cluster/health' })
})
