import { afterEach, expect, test, vi } from 'vitest'
import { at, log, metric } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

type Callback = (error?: Error | null) => void

function captured(target: 'stdout' | 'stderr', error?: Error): string[] {
  const written: string[] = []
  vi.spyOn(process[target], 'write').mockImplementation(((bytes: Uint8Array, callback: Callback) => {
    written.push(Buffer.from(bytes).toString())
    callback(error)
    return true
  }) as never)
  return written
}

test.each(['stdout', 'stderr'] as const)('a batch is one write to %s', async (target) => {
  const written = captured(target)
  await using sink = await startSink('console', { target, encoding: { codec: 'text' } })
  const status = await sink.deliver([log({ message: 'one' }), log({ message: 'two' })])
  expect(written).toEqual(['one\ntwo\n'])
  expect(status).toBe('delivered')
  expect(sink.events.counts.get('component_sent_events_total')).toBe(2)
})

test('codec pretty does not truncate lines on a terminal of unknown size (0)', async () => {
  const written = captured('stdout')
  const { isTTY, columns } = process.stdout
  Object.assign(process.stdout, { isTTY: true, columns: 0, hasColors: () => false })
  try {
    await using sink = await startSink('console', { encoding: { codec: 'pretty' } })
    await sink.deliver([log({ message: 'request served', status: 200 })])
  } finally {
    Object.assign(process.stdout, { isTTY, columns })
  }
  expect(written).toEqual(['request served status=200\n'])
})

test('codec pretty writes one plain line per event without a terminal', async () => {
  const written = captured('stdout')
  await using sink = await startSink('console', { encoding: { codec: 'pretty' } })
  await sink.deliver([
    log({
      message: 'request served',
      timestamp: '2026-01-01T12:41:03.25Z',
      level: 'info',
      method: 'GET',
      user: { id: 7 },
      note: 'two words',
      app: 'web',
      file: '/var/log/pods/shop_web/0.log',
      source_type: 'orchestrator_logs',
      orchestrator: { pod_name: 'web-x2x7p', pod_namespace: 'shop', container_name: 'web', pod_ip: '10.0.0.1' },
    }),
    log({ message: 'trace\n\tat \u001b[2Jmain', severity: 'error', host: 'n1' }),
    log({ message: 'renamed', kubernetes: { pod_name: 'web-x2x7p', pod_namespace: 'shop' }, team: 'shop' }),
    log({ message: 'not of a pod', kubernetes: { version: '1.36' } }),
    log({ status: 200, timestamp: 5 }),
    metric('requests', { type: 'counter', value: 1 }, { timestamp: at('2026-01-01T12:41:04Z') }),
  ])
  expect(written).toEqual([
    [
      '12:41:03.250 INFO  web-x2x7p request served method=GET user={"id":7} note="two words"\n',
      'ERROR n1 trace\\n at \\u001b[2Jmain\n',
      'web-x2x7p renamed\n',
      'not of a pod kubernetes={"version":"1.36"}\n',
      'status=200 timestamp=5\n',
      '12:41:04.000 requests{} + 1\n',
    ].join(''),
  ])
})

test('events are errored if nobody reads', async () => {
  captured('stdout', new Error('EPIPE'))
  await using sink = await startSink('console', { encoding: { codec: 'json' } })
  expect(await sink.deliver([log({ message: 'one' })])).toBe('errored')
  expect(sink.events.errors).toMatchObject([{ type: 'io_failed', stage: 'sending' }])
  expect(sink.events.discards).toEqual([
    { events: 1, intentional: false, reason: 'The console accepts no more events.' },
  ])
  expect(sink.events.counts.get('component_sent_events_total')).toBeUndefined()
})

test('events that cannot be encoded are rejected', async () => {
  const written = captured('stdout')
  await using sink = await startSink('console', { encoding: { codec: 'gelf' } })
  expect(await sink.deliver([log({ message: 'no host' })])).toBe('rejected')
  expect(written).toEqual([])
  expect(sink.events.discards).toEqual([{ events: 1, intentional: false, reason: 'Could not encode events.' }])
})
