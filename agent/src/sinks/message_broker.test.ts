import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { LogEvent } from '../event/log.ts'
import { makeCertificates } from '../testing/certificates.ts'
import { fakeDestination } from '../testing/destination.ts'
import { at, log, metric } from '../testing/events.ts'
import { type BrokerScript, fakeBroker, type SendAnswer } from '../testing/fake-broker.ts'
import { freePort } from '../testing/free-port.ts'
import { problemsOf, startSink, type TestSink } from '../testing/harness.ts'
import { Random } from '../testing/random.ts'
import { brokerCodec, brokerCompressions } from './message_broker/compression.ts'
import { fullTopicName, parseServiceAddress, partitionOf } from './message_broker/routing.ts'
import { commandFrame } from './message_broker/wire.ts'

const topic = 'persistent://public/default/logs'
const quick = { connection_retry_options: { min_backoff_ms: 1 } }
const minimal = { topic: 'logs', encoding: { codec: 'text' }, ...quick }
const logs = (count: number, fields: Record<string, string> = {}) =>
  Array.from({ length: count }, (_, index) => log({ message: `m${index}`, ...fields }))
const texts = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)
const counts = ({ events }: TestSink) => ({
  sent: events.counts.get('component_sent_events_total') ?? 0,
  discarded: events.counts.get('component_discarded_events_total intentional=false') ?? 0,
})
const reasons = ({ events }: TestSink) => [...new Set(events.discards.map(({ reason }) => reason))]
const start = (script: { url: string }, options: object = {}) =>
  startSink('message_broker', { ...minimal, endpoint: script.url, ...options })

test('the sink does not connect to a broker at a forbidden address', async () => {
  await using broker = await fakeBroker()
  const options = {
    ...minimal,
    endpoint: broker.url.replace('127.0.0.1', 'localhost'),
    request: { retry_attempts: 0 },
    connection_retry_options: { max_retries: 0 },
  }
  const closed = {
    enabled: true,
    http: undefined,
    https: undefined,
    no_proxy: [],
    egress: { deny: ['127.0.0.0/8', '::1'] },
  }
  await using sink = await startSink('message_broker', options, undefined, closed)

  expect(await sink.deliver(logs(1))).not.toBe('delivered')

  expect(broker.messages).toEqual([])
})

test('an event is a message with its key, properties and time', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, {
    encoding: { codec: 'json', only_fields: ['message'] },
    partition_key_field: 'id',
    properties_key: 'meta',
    producer_name: 'me',
  })
  const meta = { app: 'web', tries: 3, at: at('2026-01-01T00:00:00Z'), none: null }

  expect(await sink.deliver([log({ message: 'hello', id: 'k1', meta, timestamp: '2026-01-01T00:00:02.5Z' })])).toBe(
    'delivered',
  )

  expect(broker.messages).toEqual([
    {
      topic,
      text: '{"message":"hello"}',
      key: 'k1',
      properties: { app: 'web', tries: '3', at: '2026-01-01T00:00:00Z' },
      eventTimeMs: 1_767_225_602_500,
      sequence: 0n,
    },
  ])
  expect(broker.stored).toMatchObject([{ batched: false, producerName: 'me', compression: 0 }])
  expect(broker.producers[0]?.fields.number(9)).toBe(1) // the user configured the name
  expect(counts(sink)).toEqual({ sent: 1, discarded: 0 })
  expect(sink.events.counts.get('component_sent_bytes_total')).toBeGreaterThan(0)
})

test('a time in text form is the time of the message; invalid times are counted', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, {})
  const timed = (message: string, timestamp: string) => new LogEvent({ message, timestamp })
  await sink.deliver([timed('a', '2026-01-01T00:00:02.5Z'), timed('b', 'at noon')])
  expect(broker.messages).toMatchObject([
    { text: 'a', eventTimeMs: 1_767_225_602_500 },
    { text: 'b', eventTimeMs: undefined },
  ])
  expect(sink.events.errors).toMatchObject([{ type: 'conversion_failed', code: 'unreadable_time', count: 1 }])
})

test('uses a number as a key in text form, and omits objects and missing values', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { partition_key_field: '.id', properties_key: '.meta' })

  expect(
    await sink.deliver([log({ message: 'a', id: 7, meta: 'x' }), log({ message: 'b' }), log({ message: 'c', id: {} })]),
  ).toBe('delivered')

  expect(broker.messages).toMatchObject([
    { text: 'a', key: '7', properties: {}, eventTimeMs: undefined },
    { text: 'b', key: undefined, properties: {} },
    { text: 'c', key: undefined },
  ])
  expect(sink.events.errors).toMatchObject([{ type: 'conversion_failed', code: 'unusable_key', count: 1 }])
})

test('metric events are messages too, with a tag as key', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { partition_key_field: 'app', topic: '{{ name }}' })

  const counter = metric('requests', { type: 'counter', value: 3 }, { tags: { app: 'web' } })
  expect(await sink.deliver([counter])).toBe('delivered')

  expect(broker.messages).toMatchObject([
    {
      topic: 'persistent://public/default/requests',
      text: '2026-01-01T00:00:02.123456789Z requests{app="web"} + 3',
      key: 'web',
      eventTimeMs: 1_767_225_602_123,
    },
  ])
})

test.each(brokerCompressions)('batches are compressed by %s', async (compression) => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { compression, batch: { max_events: 50 } })
  const events = [...logs(149), log({ message: '' })]

  expect(await sink.deliver(events)).toBe('delivered')

  expect(broker.messages.map(({ text }) => text)).toEqual([...texts(149), ''])
  expect(broker.stored).toMatchObject([50, 50, 50].map((count) => ({ count, batched: true })))
  expect(broker.stored[0]?.compression).toBe(brokerCodec(compression).number)
  expect(broker.stored.map(({ sequence }) => sequence)).toEqual([0n, 50n, 100n])
})

test('a batch also ends by its size', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { batch: { max_bytes: 1 } })
  await sink.deliver(logs(3))
  expect(broker.stored.map(({ count }) => count)).toEqual([1, 1, 1])
})

test('events with a key go to the partition of its hash, others rotate by batch', async () => {
  await using broker = await fakeBroker({ partitions: () => 5 })
  await using sink = await start(broker, { partition_key_field: 'id', batch: { max_events: 2 } })
  const keyed = ['order-42', 'key1', 'order-42', 'key1'].map((id, index) => log({ message: `k${index}`, id }))

  expect(await sink.deliver([...keyed, ...logs(6)])).toBe('delivered')

  const of = (partition: number) =>
    broker.messages.filter((message) => message.topic === `${topic}-partition-${partition}`).map(({ text }) => text)
  expect(of(2)).toEqual(expect.arrayContaining(['k0', 'k2']))
  expect(of(3)).toEqual(expect.arrayContaining(['k1', 'k3']))
  expect(of(0)).toEqual(['m0', 'm1'])
  expect(of(1)).toEqual(['m2', 'm3'])
  expect(of(2).filter((text) => text.startsWith('m'))).toEqual(['m4', 'm5'])
})

test('each rendered topic has its own producer; events without the field are discarded', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { topic: 'shop/logs/{{ app }}' })
  const events = [...logs(2, { app: 'a' }), log({ message: 'lost' }), ...logs(1, { app: 'b' }), log({ app: 'x/y' })]

  expect(await sink.deliver(events)).toBe('rejected')

  expect(broker.messages.map((message) => `${message.topic} ${message.text}`).sort()).toEqual([
    'persistent://shop/logs/a m0',
    'persistent://shop/logs/a m1',
    'persistent://shop/logs/b m0',
  ])
  expect(counts(sink)).toEqual({ sent: 3, discarded: 2 })
  expect(sink.events.errors).toMatchObject([
    { type: 'template_failed', stage: 'processing' },
    { type: 'request_failed', stage: 'sending', code: 'broker_invalid_topic_name' },
  ])
})

test('of any number of topics, only some have a producer at a time, and no message is lost', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { topic: '{{ app }}', batch: { max_events: 1 } })
  const apps = Array.from({ length: 2500 }, (_, index) => `app-${index}`)
  for (let from = 0; from < apps.length; from += 100) {
    const events = apps.slice(from, from + 100).map((app) => log({ app, message: app }))
    expect(await sink.write(events)).toBe('delivered')
  }
  await vi.waitFor(() => expect(broker.closed.length).toBeGreaterThanOrEqual(1400))
  expect(await sink.deliver([log({ app: 'app-0', message: 'app-0' })])).toBe('delivered')
  expect(broker.messages.map((message) => message.text).sort()).toEqual([...apps, 'app-0'].sort())
  expect(broker.messages.filter((message) => message.topic !== `persistent://public/default/${message.text}`)).toEqual(
    [],
  )
})

test('a forgotten topic is looked up again', async () => {
  await using broker = await fakeBroker({ partitions: () => 2 })
  await using sink = await start(broker, { topic: '{{ app }}', batch: { max_events: 1 } })
  const long = (name: string) => name.padEnd(30_000, 'x')
  for (let index = 0; index < 150; index++) {
    expect(await sink.write([log({ app: long(`${index % 75}-`), message: `${index}` })])).toBe('delivered')
  }
  await sink.sink.close()
  expect(broker.messages).toHaveLength(150)
  expect(broker.messages.every((message) => /-partition-[01]$/.test(message.topic))).toBe(true)
})

test('an Avro schema is registered with the topic, and messages name its version', async () => {
  await using broker = await fakeBroker()
  const schema = '{"type":"record","name":"r","fields":[{"name":"message","type":"string"}]}'
  await using sink = await start(broker, { encoding: { codec: 'avro', avro: { schema } } })

  expect(await sink.deliver(logs(1))).toBe('delivered')

  expect(broker.producers[0]?.fields.bytes(7)?.toString('latin1')).toContain(schema)
  expect(broker.messages).toMatchObject([{ text: '\u0004m0' }])
  expect(broker.stored).toMatchObject([{ schemaVersion: 'v7' }])
})

describe('over time', () => {
  /** Moves the clock for code that reads it, without firing timers. */
  const later = (seconds: number) => vi.advanceTimersByTime(seconds * 1000)
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  test('if a topic gets more partitions, the sink writes to all of them', async () => {
    await using broker = await fakeBroker({ partitions: (_, attempt) => (attempt === 1 ? 1 : 4) })
    await using sink = await start(broker, { batch: { max_events: 1 } })
    expect(await sink.write(logs(4))).toBe('delivered')
    expect(new Set(broker.messages.map((message) => message.topic))).toEqual(new Set([`${topic}-partition-0`]))
    later(61)
    await expect
      .poll(async () => {
        await sink.write(logs(4))
        return new Set(broker.messages.map((message) => message.topic)).size
      })
      .toBe(4)
  })

  test('an idle producer is closed, and created again when needed', async () => {
    await using broker = await fakeBroker()
    await using sink = await start(broker, { topic: '{{ app }}', batch: { max_events: 1 } })
    expect(await sink.write(logs(1, { app: 'a' }))).toBe('delivered')
    later(301)
    expect(await sink.write(logs(1, { app: 'b' }))).toBe('delivered')
    await expect.poll(() => broker.closed).toEqual(['persistent://public/default/a'])
    expect(await sink.write(logs(1, { app: 'a' }))).toBe('delivered')
    expect(broker.producers.map((producer) => producer.topic.split('/').at(-1))).toEqual(['a', 'b', 'a'])
    expect(broker.connects).toHaveLength(1)
  })
})

test('the sequence numbers of a recreated producer continue', async () => {
  await using broker = await fakeBroker({ lastSequence: 41n })
  await using sink = await start(broker, { producer_name: 'me', batch: { max_events: 2 } })
  await sink.deliver(logs(3))
  expect(broker.stored.map(({ sequence }) => sequence)).toEqual([42n, 44n])
})

describe('finding the broker of a topic', () => {
  test('a look-up is redirected, and the last broker gets the messages', async () => {
    await using second = await fakeBroker()
    await using first = await fakeBroker({ lookup: () => ({ url: second.url, redirect: true }) })
    await using sink = await start(first)
    expect(await sink.deliver(logs(2))).toBe('delivered')
    expect([first.messages.length, second.messages.length]).toEqual([0, 2])
  })

  test('behind a proxy, the sink connects to the proxy and names the broker', async () => {
    await using proxy = await fakeBroker({ lookup: () => ({ url: 'pulsar://broker-1.internal:6650', proxied: true }) })
    await using sink = await start(proxy)
    expect(await sink.deliver(logs(1))).toBe('delivered')
    expect(proxy.connects.map((fields) => fields.text(6))).toEqual([undefined, 'broker-1.internal:6650'])
  })

  test('an unresponsive broker is skipped', async () => {
    const port = await freePort()
    await using broker = await fakeBroker()
    await using sink = await startSink('message_broker', {
      ...minimal,
      endpoint: `pulsar://127.0.0.1:${port},127.0.0.1:${broker.port}`,
    })
    expect(await sink.deliver(logs(1))).toBe('delivered')
  })

  test('endless redirects of look-ups are abandoned', async () => {
    const broker = await fakeBroker({ lookup: () => ({ url: broker.url, redirect: true }) })
    await using _ = broker
    await using sink = await start(broker, {
      connection_retry_options: { max_retries: 0 },
      request: { retry_attempts: 0 },
    })
    expect(await sink.deliver(logs(1))).toBe('errored')
    expect(counts(sink)).toEqual({ sent: 0, discarded: 1 })
  })
})

describe('authentication', () => {
  test('a method and its data are sent at connection, and again on request of the broker', async () => {
    await using broker = await fakeBroker()
    await using sink = await start(broker, { auth: { name: 'token', token: 'jwt' } })
    const status = sink.write(logs(1))
    await expect.poll(() => broker.messages.length).toBe(1)
    broker.challenge()
    await expect.poll(() => broker.authResponses.length).toBe(1)
    expect(await status).toBe('delivered')
    const sentTokens = broker.connects.map((fields) => [fields.text(5), fields.text(3)])
    expect(sentTokens).toEqual([['token', 'jwt']])
    expect(broker.authResponses.map((fields) => [fields.text(1), fields.text(2)])).toEqual([['token', 'jwt']])
  })

  test.each([
    { name: 'alice', token: 'secret', method: 'basic', data: 'alice:secret' },
    { name: 'basic', token: 'alice:secret', method: 'basic', data: 'alice:secret' },
    { name: 'token', token: 'jwt', method: 'token', data: 'jwt' },
  ])('the name `$name` is the method $method', async ({ name, token, method, data }) => {
    await using broker = await fakeBroker()
    await using sink = await start(broker, { auth: { name, token } })
    expect(await sink.deliver(logs(1))).toBe('delivered')
    expect(broker.connects.map((fields) => [fields.text(5), fields.text(3)])).toEqual([[method, data]])
  })

  test('a refused token is retried, and never shown', async () => {
    await using broker = await fakeBroker({
      connect: (_, attempt) => (attempt <= 2 ? { error: 3, text: 'no s3cret here' } : undefined),
    })
    await using sink = await start(broker, { auth: { name: 'token', token: 's3cret' } })
    expect(await sink.deliver(logs(2))).toBe('delivered')
    expect(counts(sink)).toEqual({ sent: 2, discarded: 0 })
    expect(sink.events.errors[0]).toMatchObject({ type: 'authentication_failed', code: 'broker_authentication' })
    expect(JSON.stringify(sink.events.errors)).toContain('no *** here')
    expect(JSON.stringify(sink.events.errors)).not.toContain('s3cret')
  })

  const credentials = { type: 'client_credentials', client_id: 'id', client_secret: 'hush' }
  const credentialsUrl = `data:application/json;base64,${Buffer.from(JSON.stringify(credentials)).toString('base64')}`

  test('an access token comes from the issuer, and a new one is fetched on request of the broker', async () => {
    let tokens = 0
    await using issuer = await fakeDestination((request) =>
      request.path === '/.well-known/openid-configuration'
        ? { body: JSON.stringify({ token_endpoint: `${issuer.url}/token` }) }
        : { body: JSON.stringify({ access_token: `t${++tokens}`, expires_in: 3600 }) },
    )
    await using broker = await fakeBroker()
    const oauth2 = { issuer_url: `${issuer.url}/`, credentials_url: credentialsUrl, audience: 'aud', scope: 'a b' }
    await using sink = await start(broker, { auth: { oauth2 } })
    const status = sink.write(logs(1))
    await expect.poll(() => broker.messages.length).toBe(1)
    broker.challenge()
    await expect.poll(() => broker.authResponses.length).toBe(1)

    expect(await status).toBe('delivered')
    expect(broker.connects.map((fields) => [fields.text(5), fields.text(3)])).toEqual([['token', 't1']])
    expect(broker.authResponses[0]?.text(2)).toBe('t2')
    expect(issuer.requests[1]?.text()).toBe(
      'grant_type=client_credentials&client_id=id&client_secret=hush&audience=aud&scope=a+b',
    )
  })

  test('a failing issuer is queried again; the secret is never shown', async () => {
    let asked = 0
    await using issuer = await fakeDestination((request) => {
      if (request.method === 'GET') return { body: JSON.stringify({ token_endpoint: `${issuer.url}/token` }) }
      return ++asked === 1 ? { status: 401, body: 'hush is wrong' } : { body: '{"access_token":"t","expires_in":1}' }
    })
    await using broker = await fakeBroker()
    await using sink = await start(broker, {
      auth: { oauth2: { issuer_url: issuer.url, credentials_url: credentialsUrl } },
    })
    expect(await sink.deliver(logs(1))).toBe('delivered')
    expect(sink.events.errors[0]).toMatchObject({ type: 'authentication_failed' })
    expect(JSON.stringify(sink.events.errors)).not.toContain('hush')
  })
})

test('TLS: the certificate and the name of the broker are verified', async () => {
  await using certificates = await makeCertificates()
  const { crt, key } = await certificates.issue('broker', 'IP:127.0.0.1')
  const tls = { cert: await certificates.read(crt), key: await certificates.read(key) }
  await using broker = await fakeBroker({ tls })
  await using trusting = await start(broker, { tls: { ca_file: certificates.ca.crt } })
  expect(await trusting.deliver(logs(2))).toBe('delivered')

  await using other = await start(broker, {
    connection_retry_options: { max_retries: 1, min_backoff_ms: 1 },
    request: { retry_attempts: 0 },
  })
  expect(await other.deliver(logs(2))).toBe('rejected')
  expect(counts(other)).toEqual({ sent: 0, discarded: 2 })
  expect(broker.messages).toHaveLength(2)
})

describe('failures', () => {
  test.each<{ fault: string; script: BrokerScript; options?: object; doubled?: boolean }>([
    {
      fault: 'a connection that is reset while messages are sent',
      script: { send: (_, attempt) => (attempt === 3 ? 'reset' : 'confirm') },
    },
    {
      fault: 'a connection that is reset after messages were stored',
      script: { send: (_, attempt) => (attempt === 3 ? 'store and reset' : 'confirm') },
      doubled: true,
    },
    { fault: 'a reset in the handshake', script: { connect: (_, attempt) => (attempt === 1 ? 'reset' : undefined) } },
    { fault: 'no handshake', script: { connect: (_, attempt) => (attempt === 1 ? 'hang' : undefined) } },
    {
      fault: 'a peer that is not a broker',
      script: { connect: (_, attempt) => (attempt === 1 ? 'garbage' : undefined) },
    },
    {
      fault: 'a broker that closes the producer',
      script: { send: (_, attempt) => (attempt === 3 ? 'close producer' : 'confirm') },
    },
    {
      fault: 'a producer that is busy',
      script: { producer: (_, __, attempt) => (attempt <= 2 ? { error: 16 } : undefined) },
    },
    {
      fault: 'a registration without an answer',
      script: { producer: (_, __, attempt) => (attempt === 1 ? 'hang' : undefined) },
      options: { request: { timeout_secs: 1 } },
    },
    { fault: 'a blocked quota', script: { producer: (_, __, attempt) => (attempt === 1 ? { error: 7 } : undefined) } },
    {
      fault: 'a broker that is not ready',
      script: { lookup: (_, attempt) => (attempt <= 2 ? { error: 6 } : undefined) },
    },
    { fault: 'too many look-ups', script: { partitions: (_, attempt) => (attempt <= 2 ? { error: 14 } : 0) } },
    {
      fault: 'no receipt in time',
      script: { send: (_, attempt) => (attempt === 3 ? 'lose' : 'confirm') },
      options: { request: { timeout_secs: 1 } },
    },
    ...[0, 1, 2, 3, 6, 8, 9].map((error) => ({
      fault: `error ${error} for a send`,
      script: {
        send: (_: unknown, attempt: number): SendAnswer => (attempt === 3 ? { error } : 'confirm'),
      },
    })),
  ])('delivers all events in order after $fault', async ({ script, options = {}, doubled = false }) => {
    await using broker = await fakeBroker(script)
    const connection = { min_backoff_ms: 1, connection_timeout_secs: 1 }
    await using sink = await start(broker, {
      batch: { max_events: 2 },
      connection_retry_options: connection,
      ...options,
    })

    expect(await sink.deliver(logs(20))).toBe('delivered')

    const received = broker.messages.map(({ text }) => text)
    // A broker may have stored an unconfirmed message: it then receives the message twice, with the same number.
    const bySequence = new Map(broker.messages.map(({ sequence, text }) => [sequence, text]))
    expect([...bySequence.values()]).toEqual(texts(20))
    if (!doubled) expect(new Set(received).size).toBe(20)
    expect(counts(sink)).toEqual({ sent: 20, discarded: 0 })
    expect(sink.events.errors.length).toBeGreaterThan(0)
    expect(sink.events.errors.every(({ stage, level }) => stage === 'sending' && level === 'warn')).toBe(true)
  })

  test.each<{ fault: string; script: BrokerScript; code: string; sent?: number; requests?: number }>([
    { fault: 'no permission', script: { lookup: () => ({ error: 4 }) }, code: 'broker_authorization' },
    { fault: 'an unknown topic', script: { partitions: () => ({ error: 11 }) }, code: 'broker_topic_not_found' },
    {
      fault: 'a terminated topic',
      script: { producer: () => ({ error: 15 }) },
      code: 'broker_topic_terminated',
    },
    { fault: 'a wrong topic', script: { partitions: () => ({ error: 17 }) }, code: 'broker_invalid_topic_name' },
    { fault: 'a wrong schema', script: { producer: () => ({ error: 18 }) }, code: 'broker_incompatible_schema' },
    {
      fault: 'a topic that is terminated while it is written',
      script: { send: (_, attempt) => (attempt === 3 ? { error: 15, alone: true } : 'confirm') },
      code: 'broker_topic_terminated',
      sent: 18,
    },
  ])('discards events for $fault', async ({ script, code, sent = 0 }) => {
    await using broker = await fakeBroker(script)
    await using sink = await start(broker, { batch: { max_events: 2 } })

    expect(await sink.deliver(logs(20))).toBe('rejected')

    expect(counts(sink)).toEqual({ sent, discarded: 20 - sent })
    expect(reasons(sink)).toEqual(['Service call failed. No retries or retries exhausted.'])
    expect(new Set(sink.events.errors.map((error) => error.code))).toEqual(new Set([code]))
    expect(broker.messages).toHaveLength(sent)
  })

  test('delivers all events to a broker that starts late', async () => {
    const port = await freePort()
    await using sink = await startSink('message_broker', { ...minimal, endpoint: `pulsar://127.0.0.1:${port}` })
    const status = sink.deliver(logs(3))
    await expect.poll(() => sink.events.errors.length).toBeGreaterThan(0)
    await using broker = await fakeBroker({ port })

    expect(await status).toBe('delivered')
    expect(broker.messages.map(({ text }) => text)).toEqual(texts(3))
    expect(sink.events.errors[0]).toMatchObject({ type: 'connection_failed', stage: 'sending', level: 'warn' })
  })

  test.each([
    { attempts: 0, status: 'errored' },
    { attempts: 1, status: 'rejected' },
  ])('gives up after $attempts retries', async ({ attempts, status }) => {
    await using broker = await fakeBroker({ send: () => ({ error: 2 }) })
    await using sink = await start(broker, { request: { retry_attempts: attempts } })

    expect(await sink.deliver(logs(3))).toBe(status)

    expect(broker.sends).toHaveLength(attempts + 1)
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
  })

  test('failed attempts to connect count before retries', async () => {
    const port = await freePort()
    await using sink = await startSink('message_broker', {
      ...minimal,
      endpoint: `pulsar://127.0.0.1:${port}`,
      connection_retry_options: { min_backoff_ms: 1, max_retries: 2 },
      request: { retry_attempts: 0 },
    })
    expect(await sink.deliver(logs(3))).toBe('rejected')
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
    expect(sink.events.errors.filter(({ level }) => level === 'warn')).toHaveLength(2)
  })

  test('abandons its events when the time for a graceful stop is over', async () => {
    await using broker = await fakeBroker({ send: () => 'lose' })
    const sink = await start(broker)
    const status = sink.deliver(logs(3))
    await expect.poll(() => broker.sends.length).toBe(1)

    await sink[Symbol.asyncDispose]()

    expect(await status).toBe('errored')
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
    expect(reasons(sink)).toEqual(['The time limit for a graceful stop is over.'])
  })

  test('abandons events that wait for their topic when the time for a graceful stop is over', async () => {
    await using broker = await fakeBroker({ connect: () => 'hang' })
    const sink = await start(broker)
    const status = sink.deliver(logs(3))
    await expect.poll(() => broker.connects.length).toBe(1)

    await sink[Symbol.asyncDispose]()

    expect(await status).toBe('errored')
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
    expect(reasons(sink)).toEqual(['The time limit for a graceful stop is over.'])
  })

  test('a silent connection is pinged, and closed without a reply', async () => {
    await using broker = await fakeBroker()
    await using sink = await start(broker, {
      connection_retry_options: { keep_alive_secs: 1, connection_timeout_secs: 1, min_backoff_ms: 1 },
    })
    expect(await sink.write(logs(1))).toBe('delivered')
    broker.ping()
    await expect.poll(() => broker.pongs).toBe(1)
    await expect.poll(() => broker.pings).toBeGreaterThan(0)
    broker.silent = true
    const status = sink.write(logs(2))
    await expect.poll(() => broker.connects.length).toBeGreaterThan(1)
    broker.silent = false
    expect(await status).toBe('delivered')
  }, 30_000)

  test('only an event above the limit of the broker is discarded', async () => {
    await using broker = await fakeBroker({ maxMessageBytes: 2000 })
    await using sink = await start(broker, { compression: 'lz4' })
    const noise = Array.from({ length: 4000 }, (_, index) => String.fromCharCode(33 + ((index * index * 7919) % 89)))
    const large = Array.from(noise, (letter, index) => noise[(index * 31 + letter.charCodeAt(0)) % 4000]).join('')
    const events = [...logs(4), log({ message: large }), ...logs(4)]

    expect(await sink.deliver(events)).toBe('rejected')

    expect(broker.messages.map(({ text }) => text)).toEqual([...texts(4), ...texts(4)])
    expect(counts(sink)).toEqual({ sent: 8, discarded: 1 })
    expect(reasons(sink)).toEqual(['The event is larger than the destination accepts.'])
    expect(sink.events.errors).toMatchObject([{ type: 'request_failed', code: 'broker_message_too_large' }])
  })

  test('a batch that a topic rejects is halved', async () => {
    await using broker = await fakeBroker({
      send: ({ messages }) => (messages.some(({ text }) => text === 'm1') ? { error: 22, alone: true } : 'confirm'),
    })
    await using sink = await start(broker)

    expect(await sink.deliver(logs(4))).toBe('rejected')

    expect(broker.messages.map(({ text }) => text)).toEqual(['m0', 'm2', 'm3'])
    expect(counts(sink)).toEqual({ sent: 3, discarded: 1 })
    // A deduplicating broker must not mistake any of them for a duplicate.
    const numbers = broker.sends.map(({ sequence }) => sequence)
    expect(numbers).toEqual([...numbers].sort((a, b) => Number(a - b)))
    expect(new Set(numbers).size).toBe(numbers.length)
  })
})

test('late receipts block the sink, and the number of pending sends is limited', async () => {
  let under = 0
  let max = 0
  const held: (() => void)[] = []
  await using broker = await fakeBroker({
    send: async (): Promise<SendAnswer> => {
      max = Math.max(max, ++under)
      await new Promise<void>((resolve) => held.push(resolve))
      under--
      return 'confirm'
    },
  })
  await using sink = await start(broker, { batch: { max_events: 1 }, request: { concurrency: 3 } })
  const status = sink.deliver(logs(10))
  await expect.poll(() => broker.sends.length).toBe(1) // the test broker answers sends one at a time
  let ended = false
  void status.then(() => {
    ended = true
  })
  for (let index = 0; index < 10; index++) {
    await expect.poll(() => held.length).toBeGreaterThan(index)
    expect(ended).toBe(false)
    held[index]?.()
  }
  expect(await status).toBe('delivered')
  expect(broker.messages.map(({ text }) => text)).toEqual(texts(10))
})

test('writes wait while too much data has no receipt', async () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  await using broker = await fakeBroker({ send: () => gate.then(() => 'confirm' as const) })
  await using sink = await start(broker, { batch: { max_events: 1 } })
  let taken = 0
  const statuses = Array.from({ length: 3 }, () =>
    sink.write(logs(600)).then((status) => {
      taken++
      return status
    }),
  )
  await expect.poll(() => broker.sends.length).toBeGreaterThan(0)
  const { promise, resolve } = Promise.withResolvers<void>()
  setImmediate(resolve)
  await promise
  expect(taken).toBe(0)
  open()
  expect(await Promise.all(statuses)).toEqual(['delivered', 'delivered', 'delivered'])
  expect(counts(sink)).toEqual({ sent: 1800, discarded: 0 })
})

test.each(['none', 'adaptive', 7] as const)('concurrency %s delivers all in order', async (concurrency) => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { batch: { max_events: 3 }, request: { concurrency } })
  expect(await sink.deliver(logs(100))).toBe('delivered')
  expect(broker.messages.map(({ text }) => text)).toEqual(texts(100))
})

test('the rate limit counts sends', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, {
    batch: { max_events: 1 },
    request: { rate_limit_num: 2, rate_limit_duration_secs: 1 },
  })
  const status = sink.deliver(logs(3))
  await expect.poll(() => broker.sends.length).toBe(2)
  expect(await status).toBe('delivered')
  expect(broker.sends).toHaveLength(3)
})

test('random faults lose nothing and keep the order', async () => {
  const seed = 20_260_101
  const random = new Random(seed)
  await using broker = await fakeBroker({
    partitions: () => 3,
    send: (): SendAnswer => {
      const drawn = random.next()
      if (drawn < 0.01) return 'reset'
      if (drawn < 0.02) return 'store and reset'
      if (drawn < 0.03) return 'close producer'
      if (drawn < 0.04) return { error: 2 }
      return 'confirm'
    },
  })
  await using sink = await start(broker, {
    partition_key_field: 'key',
    compression: 'zstd',
    batch: { max_events: 5 },
    request: { concurrency: 8 },
  })
  const events: LogEvent[] = Array.from({ length: 2000 }, (_, index) =>
    log({ message: `${index}`, key: `k${index % 17}` }),
  )

  expect(await sink.deliver(events), `seed ${seed}`).toBe('delivered')

  expect(counts(sink)).toEqual({ sent: 2000, discarded: 0 })
  const kept = new Map<string, number[]>()
  const seen = new Set<string>()
  for (const { topic: name, sequence, text } of broker.messages) {
    if (seen.has(`${name} ${sequence}`)) continue // twice with one number, so a broker can deduplicate it
    seen.add(`${name} ${sequence}`)
    kept.set(name, [...(kept.get(name) ?? []), Number(text)])
  }
  for (const [name, numbers] of kept) {
    expect(numbers, name).toEqual(numbers.toSorted((a, b) => a - b))
    expect(new Set(numbers.map((number) => partitionOf(`k${number % 17}`, 3))).size).toBe(1)
  }
  expect([...kept.values()].flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 2000 }, (_, index) => index))
})

describe('health check', () => {
  const check = async (script: BrokerScript, options: object = {}) => {
    await using broker = await fakeBroker(script)
    await using sink = await start(broker, options)
    await sink.sink.healthcheck?.(AbortSignal.timeout(5000))
    return broker
  }
  test('asks for the broker of the topic', async () => {
    const broker = await check({ partitions: () => 2 })
    expect(broker.connects).toHaveLength(1)
    expect(broker.producers).toHaveLength(0)
  })
  test('only connects if the topic depends on the event', async () => {
    const broker = await check({ partitions: () => ({ error: 11 }) }, { topic: '{{ app }}' })
    expect(broker.connects).toHaveLength(1)
  })
  test.each<[string, BrokerScript, string]>([
    ['refused credentials', { connect: () => ({ error: 3, text: 'nobody knows you' }) }, 'nobody knows you'],
    ['an unknown topic', { partitions: () => ({ error: 11 }) }, 'topic_not_found'],
    ['a broker that is not ready', { lookup: () => ({ error: 6 }) }, 'service_not_ready'],
  ])('reports %s', async (_, script, text) => {
    await expect(check(script)).rejects.toThrow(text)
  })
  test('can be its own address', async () => {
    await using admin = await fakeDestination(503)
    await expect(check({}, { healthcheck: { uri: `${admin.url}/ready` } })).rejects.toThrow('responded with status 503')
  })
})

describe('options', () => {
  const problems = (options: object) =>
    problemsOf('sink', 'message_broker', { ...minimal, endpoint: 'pulsar://b:6650', ...options })
  test.each<[string, object, string, string]>([
    ['an address of another kind', { endpoint: 'http://b:6650' }, 'endpoint', 'pulsar://host:port'],
    ['an invalid host', { endpoint: 'pulsar://a:1,b:x' }, 'endpoint', '"b:x"'],
    ['TLS without it in the address', { tls: { enabled: true } }, 'endpoint', 'does not use TLS'],
    ['half of a topic', { topic: 'a/b' }, 'topic', 'tenant/namespace/name'],
    ['half of a method', { auth: { name: 'token' } }, 'auth', 'Invalid auth config'],
    ['the other half', { auth: { token: 't' } }, 'auth', 'Invalid auth config'],
    [
      'both ways',
      { auth: { name: 'a', token: 't', oauth2: { issuer_url: 'http://i', credentials_url: 'file:///c' } } },
      'auth',
      'Invalid auth config: can only specify name and token or oauth2 configuration',
    ],
    [
      'credentials elsewhere',
      { auth: { oauth2: { issuer_url: 'http://i', credentials_url: 'https://x' } } },
      'auth.oauth2.credentials_url',
      'scheme file or data',
    ],
  ])('%s is reported', (_, options, path, text) => {
    expect(problems(options)).toMatchObject([{ path, message: expect.stringContaining(text) }])
  })
  test('the default options are valid', () => {
    expect(problems({})).toEqual([])
    expect(
      problems({ endpoint: 'pulsar+ssl://a,b:1', topic: 'non-persistent://t/n/x', tls: { enabled: true } }),
    ).toEqual([])
  })
})

test('names, addresses and hashes match those of the broker', () => {
  expect(
    ['t', 'a/b/c', 'persistent://a/b/c', 'non-persistent://a/b/c', 'a/b', '', 'persistent://t', 'a//c'].map(
      fullTopicName,
    ),
  ).toEqual([
    'persistent://public/default/t',
    'persistent://a/b/c',
    'persistent://a/b/c',
    'non-persistent://a/b/c',
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect(parseServiceAddress('pulsar+ssl://a,[::1]:7')).toEqual([
    { host: 'a', port: 6651, secure: true },
    { host: '::1', port: 7, secure: true },
  ])
  expect(['order-42', 'key1'].map((key) => partitionOf(key, 5))).toEqual([2, 3])
  // The Java hash is negative before its sign bit is cleared.
  expect(partitionOf('polygenelubricants', 7)).toBe(0x80000000 % 1)
})

test('a frame equals that of other clients', () => {
  const frame = commandFrame(2, (fields) => {
    fields.text(1, 'penstock-0.1.0')
    fields.integer(4, 12)
  })
  expect(frame.toString('hex')).toBe('0000001a00000016080212120a0e70656e73746f636b2d302e312e30200c')
})
