import { expect, test } from 'vitest'
import { fakeDestination } from '../testing/destination.ts'
import { metric } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'

const time = '1767225602123456789'
const options = (endpoint: string) => ({ endpoint, token: 'a token', default_namespace: 'ns' })

test('writes counters and gauges as fields of their namespace; everything else is discarded', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('monitor_c_metrics', options(destination.url))

  const status = await sink.deliver([
    metric('pool.used', { type: 'gauge', value: 42 }, { kind: 'absolute', tags: { 'os.host': 'h' } }),
    metric('hits', { type: 'counter', value: 1 }, { namespace: 'web' }),
    metric('users', { type: 'set', values: ['a'] }),
    metric('hits', { type: 'counter', value: 2 }, { namespace: 'web' }),
  ])

  expect(status).toBe('rejected')
  expect(destination.requests).toHaveLength(1)
  expect(destination.requests[0]?.path).toMatch(/^\/write\?db=metrics&v=penstock-\d+\.\d+\.\d+&precision=ns$/)
  expect(destination.requests[0]?.headers).toMatchObject({ 'content-type': 'text/plain' })
  expect(destination.requests[0]?.text()).toBe(
    [
      `ns,metric_type=gauge,os.host=h,token=a\\ token pool.used=42 ${time}`,
      `web,metric_type=counter,token=a\\ token hits=3 ${time}`,
    ].join('\n'),
  )
  expect(sink.events.errors).toMatchObject([{ type: 'encoder_failed', stage: 'processing', level: 'warn', count: 1 }])
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
  expect(sink.events.counts.get('component_sent_events_total')).toBe(3)
})

test('absolute counters become increments, incremental gauges become absolute', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('monitor_c_metrics', options(destination.url))
  const total = (value: number) => metric('c', { type: 'counter', value }, { kind: 'absolute' })
  const change = (value: number) => metric('g', { type: 'gauge', value })

  expect(await sink.deliver([total(5), total(9), change(2), change(3)])).toBe('delivered')

  expect(destination.requests[0]?.text()).toBe(
    [`ns,metric_type=counter,token=a\\ token c=4 ${time}`, `ns,metric_type=gauge,token=a\\ token g=5 ${time}`].join(
      '\n',
    ),
  )
})

test('queries the health of the service', async () => {
  await using destination = await fakeDestination(200, 500)
  await using sink = await startSink('monitor_c_metrics', options(destination.url))

  await sink.sink.healthcheck?.(AbortSignal.timeout(5000))
  await expect(sink.sink.healthcheck?.(AbortSignal.timeout(5000))).rejects.toMatchObject({ code: 'PEN_HEALTHCHECK' })

  expect(destination.requests[0]).toMatchObject({ method: 'GET', path: '/health' })
})

test.each([{}, { token: 't' }, { default_namespace: 'n' }])('does not start with only %j', async (given) => {
  await expect(startSink('monitor_c_metrics', given)).rejects.toThrow(/token|default_namespace/)
})

test('beyond the limit of remembered series, new ones are rejected and counted, and the others continue', async () => {
  await using destination = await fakeDestination(202)
  await using sink = await startSink('monitor_c_metrics', {
    endpoint: destination.url,
    token: 't',
    default_namespace: 'ns',
  })
  const total = (index: number, value: number) =>
    metric('m', { type: 'counter', value }, { kind: 'absolute', tags: { a: `${index}`.padEnd(40_000, 'x') } })
  const status = await sink.write(Array.from({ length: 2000 }, (_, index) => total(index, 1)))
  expect(status).toBe('rejected')
  const refused = sink.events.counts.get('component_discarded_events_total intentional=false') ?? 0
  expect(refused).toBeGreaterThan(1000)
  expect(sink.events.counts.get('component_discarded_events_total intentional=true')).toBe(2000 - refused)
  expect(sink.events.errors).toMatchObject([{ code: 'too_many_series', count: refused }])

  expect(await sink.deliver([total(0, 3)])).toBe('delivered')
  expect(destination.requests).toHaveLength(1)
})
