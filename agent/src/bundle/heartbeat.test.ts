// Tests when heartbeats are sent; bundle.process.test.ts tests their content.

import { afterEach, expect, test, vi } from 'vitest'
import { ChangingHosts } from '../net/egress.ts'
import { type LogRecord, silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import type { Topology } from '../topology/run.ts'
import { heartbeatPeriods } from './format.ts'
import { Heartbeat, type HeartbeatBody, type LastError } from './heartbeat.ts'
import { OperatorClient } from './operator-client.ts'
import type { BundleRunner } from './runner.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

test('repeats a report that the operator did not receive soon, then less often, and returns to the usual interval when it is received', async () => {
  vi.useFakeTimers()
  const sent: number[] = []
  let away = true
  vi.spyOn(OperatorClient.prototype, 'post').mockImplementation(async () => {
    sent.push(Date.now())
    if (away) throw new Error('connection refused')
    return { status: 200, headers: new Map(), body: Buffer.from('{}') }
  })
  const runner = {
    state: { failures: [] },
    pipelines: () => [],
    reading: () => [],
    onAttempt: () => {},
  } as unknown as BundleRunner
  const none = new Map<string, never>()
  const topology = { sources: none, transforms: none, sinks: none } as unknown as Topology
  const place = { url: 'https://operator', tokenFile: '/none', caFile: '/none', node: 'n', pod: 'p', namespace: 's' }
  const metrics = new Metrics()
  const heartbeat = new Heartbeat({ ...place, logger: silentLogger, metrics }, runner, topology)
  /** Waits for this many more heartbeats; returns the seconds before each. */
  const gaps = async (count: number) => {
    const from = sent.length
    while (sent.length < from + count) await vi.advanceTimersByTimeAsync(10)
    return sent.slice(from).map((at, index) => (at - (sent[from + index - 1] ?? at)) / 1000)
  }
  await gaps(1)
  const usual = heartbeatPeriods.defaultMs / 1000
  for (const [index, gap] of (await gaps(8)).entries()) {
    const expected = Math.min(usual, 2 ** index)
    expect(gap).toBeGreaterThanOrEqual(expected * 0.79)
    expect(gap).toBeLessThanOrEqual(expected * 1.21)
  }
  expect(metrics.sum('heartbeat_failures_total', {})).toBe(9)
  away = false
  for (const gap of (await gaps(3)).slice(1)) expect(gap).toBeGreaterThanOrEqual(usual * 0.79)
  runner.onAttempt() // a bundle is active
  const [atOnce = 0, early = 0, later = 0] = await gaps(3)
  expect(atOnce).toBeLessThanOrEqual(0.2)
  expect(early).toBeLessThanOrEqual(5 * 1.21)
  expect(later).toBeGreaterThanOrEqual(usual * 0.79)
  away = true
  await gaps(1)
  expect((await gaps(1))[0]).toBeLessThanOrEqual(1.21)
  await heartbeat.stop()
  await heartbeat.close()
})

test('restricted pipelines cannot use the addresses in the last answer of the operator', async () => {
  vi.useFakeTimers()
  const answers = ['{"denied":["192.0.2.7","api.example"]}', '{"denied":"192.0.2.8"}', '{}', '{"denied":["192.0.2.9"]}']
  let sent = 0
  vi.spyOn(OperatorClient.prototype, 'post').mockImplementation(async () => {
    return { status: 200, headers: new Map(), body: Buffer.from(answers[sent++] ?? '{}') }
  })
  const denied = new ChangingHosts()
  const runner = {
    state: { failures: [] },
    pipelines: () => [],
    reading: () => [],
    onAttempt: () => {},
    denied,
  } as unknown as BundleRunner
  const none = new Map<string, never>()
  const topology = { sources: none, transforms: none, sinks: none } as unknown as Topology
  const place = { url: 'https://operator', tokenFile: '/none', caFile: '/none', node: 'n', pod: 'p', namespace: 's' }
  const heartbeat = new Heartbeat({ ...place, logger: silentLogger, metrics: new Metrics() }, runner, topology)
  const until = async (count: number) => {
    while (sent < count) await vi.advanceTimersByTimeAsync(100)
    await vi.advanceTimersByTimeAsync(1)
  }
  const known = () => ['192.0.2.7', 'api.example', '192.0.2.8', '192.0.2.9'].filter((host) => denied.has(host))
  await until(1)
  expect(known()).toEqual(['192.0.2.7', 'api.example'])
  await until(3) // unusable, so the last known ones stay
  expect(known()).toEqual(['192.0.2.7', 'api.example'])
  await until(4)
  expect(known()).toEqual(['192.0.2.9'])
  await heartbeat.stop()
  await heartbeat.close()
})

test('counts events that a full buffer drops once, and as missing', async () => {
  const metrics = new Metrics()
  const out = { component_id: 'ns/pipe/out', component_kind: 'sink', component_type: 'http' }
  const count = (name: string, labels: object, by: number) => metrics.counter(name, { ...labels }).add(by)
  // The buffer has dropped five events, which the component counts too. The sink has discarded two intentionally, and one
  // by an error.
  count('buffer_discarded_events_total', { ...out, buffer_id: 'out', intentional: 'true' }, 5)
  count('component_discarded_events_total', { ...out, intentional: 'true' }, 7)
  count('component_discarded_events_total', { ...out, intentional: 'false' }, 1)
  const none = new Map<string, never>()
  const topology = { sources: none, transforms: none, sinks: new Map([['ns/pipe/out', {}]]) } as unknown as Topology
  const runner = {
    state: { failures: [] },
    pipelines: () => [{ id: 'ns/pipe', part: { pipeline: { generation: 1, uid: 'u', hash: 'h' } } }],
    reading: () => [],
    onAttempt: () => {},
  } as unknown as BundleRunner
  const place = { url: 'https://operator', tokenFile: '/none', caFile: '/none', node: 'n', pod: 'p', namespace: 's' }
  const heartbeat = new Heartbeat({ ...place, logger: silentLogger, metrics }, runner, topology)
  expect(heartbeat.figures()['ns/pipe']).toMatchObject({ filtered: 2, dropped: 6 })
  await heartbeat.stop()
  await heartbeat.close()
})

test.each([
  ['while the agent runs', false],
  ['while it ends', true],
])('figures of rejected reports are included once in the first accepted report, %s', async (_, isLast) => {
  vi.useFakeTimers()
  const taken: number[] = []
  let refusals = 0
  let isAway = false
  vi.spyOn(OperatorClient.prototype, 'post').mockImplementation(async (_path, body) => {
    if (isAway) {
      refusals++
      return { status: 503, headers: new Map(), body: Buffer.from('{"error":"There is no leader at the moment."}') }
    }
    taken.push((body as HeartbeatBody).pipelines['ns/pipe']?.eventsOut ?? 0)
    return { status: 200, headers: new Map(), body: Buffer.from('{}') }
  })
  const metrics = new Metrics()
  const out = { component_id: 'ns/pipe/out', component_kind: 'sink', component_type: 'http' }
  const none = new Map<string, never>()
  const topology = { sources: none, transforms: none, sinks: new Map([['ns/pipe/out', {}]]) } as unknown as Topology
  const runner = {
    state: { failures: [] },
    pipelines: () => [{ id: 'ns/pipe', part: { pipeline: { generation: 1, uid: 'u', hash: 'h' } } }],
    reading: () => [],
    onAttempt: () => {},
  } as unknown as BundleRunner
  const place = { url: 'https://operator', tokenFile: '/none', caFile: '/none', node: 'n', pod: 'p', namespace: 's' }
  const heartbeat = new Heartbeat({ ...place, logger: silentLogger, metrics }, runner, topology)
  const until = async (holds: () => boolean) => {
    while (!holds()) await vi.advanceTimersByTimeAsync(10)
  }
  await until(() => taken.length === 1)
  isAway = true
  metrics.counter('component_sent_events_total', out).add(40)
  await until(() => refusals === 1)
  metrics.counter('component_sent_events_total', out).add(2)
  await until(() => refusals === 3)
  isAway = false
  if (!isLast) await until(() => taken.length === 2)
  await heartbeat.stop()
  await heartbeat.close()
  expect(taken).toEqual(isLast ? [0, 42] : [0, 42, 0])
})

/** An agent with one pipeline and its sink `out`; the test controls its records, its counts and the time. */
async function withSink() {
  vi.useFakeTimers()
  const beats: { readonly at: number; readonly error: LastError | undefined }[] = []
  vi.spyOn(OperatorClient.prototype, 'post').mockImplementation(async (_, body) => {
    const { pipelines } = body as HeartbeatBody
    beats.push({ at: Date.now(), error: pipelines['ns/pipe']?.components['out']?.lastError })
    return { status: 200, headers: new Map(), body: Buffer.from('{}') }
  })
  const metrics = new Metrics()
  const identity = { component_id: 'ns/pipe/out', component_kind: 'sink', component_type: 'http' }
  const none = new Map<string, never>()
  const topology = { sources: none, transforms: none, sinks: new Map([['ns/pipe/out', {}]]) } as unknown as Topology
  const runner = {
    state: { failures: [] },
    pipelines: () => [{ id: 'ns/pipe', part: { pipeline: { generation: 1, uid: 'u', hash: 'h' } } }],
    reading: () => [],
    onAttempt: () => {},
  } as unknown as BundleRunner
  const place = { url: 'https://operator', tokenFile: '/none', caFile: '/none', node: 'n', pod: 'p', namespace: 's' }
  const listeners = new Set<(record: LogRecord) => void>()
  const subscribeToLog = (listener: (record: LogRecord) => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  const heartbeat = new Heartbeat({ ...place, logger: silentLogger, metrics, subscribeToLog }, runner, topology)
  const say = (message: string, fields: object) => {
    const record = { ...identity, level: 'error', message, timestamp: new Date().toISOString(), ...fields }
    for (const listener of listeners) listener(record)
  }
  return {
    beats,
    /** The destination answers a request with this, as `delivery` logs it; repeated messages are not logged. */
    refused(fields: object, isLogged = true) {
      metrics.counter('component_errors_total', { ...identity, error_type: 'request_failed', stage: 'sending' }).add(1)
      metrics.counter('component_discarded_events_total', { ...identity, intentional: 'false' }).add(3)
      if (isLogged)
        say('Request failed and is not retried; its events are discarded.', {
          ...{ error_type: 'request_failed', events: 3, ...fields },
        })
      say('Events dropped.', { count: 3, intentional: false, reason: 'Service call failed.' })
    },
    say,
    sent: () => metrics.counter('component_sent_events_total', identity).add(3),
    /** Waits for this many more reports; returns the last one. */
    async next(count = 1) {
      const wanted = beats.length + count
      while (beats.length < wanted) await vi.advanceTimersByTimeAsync(10)
      return beats.at(-1)
    },
    async [Symbol.asyncDispose]() {
      await heartbeat.stop()
      await heartbeat.close()
    },
  }
}

test('every report contains the last error of a sink as the cause, and never the dropped events', async () => {
  await using agent = await withSink()
  await agent.next()
  agent.refused({ status: 401 })
  const cause = {
    reason: 'Unauthorized',
    message: 'Request failed and is not retried; its events are discarded. Status 401.',
  }
  expect((await agent.next())?.error).toMatchObject(cause)
  // The refusal repeats too often to be logged each time.
  agent.refused({ status: 401 }, false)
  expect((await agent.next())?.error).toMatchObject(cause)
  agent.sent()
  await agent.next(2)
  agent.say('Events dropped.', { count: 1, intentional: false, reason: 'The sink failed.' })
  expect((await agent.next())?.error).toMatchObject({ reason: 'Error', message: 'The sink failed.' })
})

test.each([
  ['an answer', { status: 503 }, 'Rejecting'],
  ['an answer to the health check', { error: { message: 'It says no.', status: 403 } }, 'Unauthorized'],
  ['a refused connection', { error: { message: 'It is away.', kind: 'connection' } }, 'ConnectFailed'],
  ['a refused certificate', { error: 'expired', error_kind: 'CERT_HAS_EXPIRED' }, 'TLSFailed'],
  ['a connection that takes too long', { error: 'late', error_kind: 'UND_ERR_CONNECT_TIMEOUT' }, 'ConnectFailed'],
  ['an answer that does not come', { error_type: 'timed_out', timeout_ms: 5000 }, 'ConnectFailed'],
  ['an answer that is not HTTP', { error: 'no', error_kind: 'HPE_INVALID_CONSTANT' }, 'ConnectFailed'],
  ['text alone', { error: 'the answer of the socket says: status 401, CERT, timed out' }, 'Error'],
])('the reason for %s is derived from codes, never from text', async (_, fields, reason) => {
  await using agent = await withSink()
  await agent.next()
  agent.say('Healthcheck failed.', fields)
  expect((await agent.next())?.error).toMatchObject({ reason })
})

test('a destination that does not answer is named as such', async () => {
  await using agent = await withSink()
  await agent.next()
  agent.say('Request failed; trying again.', { error_type: 'timed_out', timeout_ms: 5000 })
  expect((await agent.next())?.error?.message).toBe('Request failed; trying again. No answer within 5 s.')
})

test('an event that a destination rejects is reported with the kind of its error', async () => {
  await using agent = await withSink()
  await agent.next()
  agent.refused({ partial: true, item_status: 400, error_type: 'mapper_parsing_exception' })
  expect((await agent.next())?.error).toMatchObject({
    reason: 'EventsRejected',
    message:
      'Request failed and is not retried; its events are discarded. Status 400 of an event (mapper_parsing_exception).',
  })
})

test('the first refusal of a destination is reported within seconds, further ones at the usual time', async () => {
  await using agent = await withSink()
  await agent.next(3)
  const refusedAt = Date.now()
  agent.refused({ status: 401 })
  expect(((await agent.next())?.at ?? 0) - refusedAt).toBeLessThanOrEqual(5100)
  const usual = heartbeatPeriods.defaultMs
  for (let period = 0; period < 3; period++) {
    const before = agent.beats.at(-1)?.at ?? 0
    agent.refused({ status: 401 })
    expect(((await agent.next())?.at ?? 0) - before).toBeGreaterThanOrEqual(usual * 0.79)
  }
  // It recovers, and refuses again.
  agent.sent()
  await agent.next(2)
  const again = Date.now()
  agent.refused({ status: 401 })
  expect(((await agent.next())?.at ?? 0) - again).toBeLessThanOrEqual(5100)
})
