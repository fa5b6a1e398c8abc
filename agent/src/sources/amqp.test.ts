import { expect, test, vi } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import type { Batch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import { decodingCodecs, framingMethods } from '../schema/groups.ts'
import { type Broker, startBroker } from '../testing/amqp-broker.ts'
import { problemsOf, startSource } from '../testing/harness.ts'
import { framed, goodFrame, hostileBytes, limitedTo } from '../testing/hostile.ts'
import { Random } from '../testing/random.ts'

const source = (broker: Broker, options: object = {}, extra: Parameters<typeof startSource>[2] = {}) =>
  startSource('amqp', { connection_string: broker.url, ...options }, extra)
const text = (body: string) => ({ body: Buffer.from(body) })
const plain = (event: unknown) => JSON.parse(JSON.stringify((event as LogEvent).fields)) as unknown

test('a message becomes an event with its properties, and is acknowledged when the event is delivered', async () => {
  await using broker = await startBroker()
  await using started = await source(broker)
  broker.publish({ ...text('hi'), exchange: 'ex', routingKey: 'k', timestamp: 1_704_164_645 })
  await started.received(1)
  await started.stop()
  expect(plain(started.sent[0])).toEqual({
    message: 'hi',
    exchange: 'ex',
    routing: 'k',
    offset: 1,
    timestamp: '2024-01-02T03:04:05Z',
    source_type: 'amqp',
  })
  expect(broker.accepted).toEqual(['hi'])
  expect(broker.prefetch).toBe(4096)
  expect(started.events.counts.get('component_received_bytes_total')).toBe(2)
  expect(started.events.counts.get('source_lag_time_seconds')).toBe(1)
})

test('fields have the configured names, or none, and do not replace existing fields', async () => {
  await using broker = await startBroker()
  await using started = await source(broker, {
    exchange_key: 'amqp.exchange',
    routing_key_field: '',
    offset_key: 'message',
    prefetch_count: 7,
  })
  broker.publish({ ...text('hi'), timestamp: 1_704_164_645_678 }, text('no time'))
  await started.received(2)
  expect(plain(started.sent[0])).toEqual({
    message: 'hi',
    amqp: { exchange: '' },
    timestamp: '2024-01-02T03:04:05.678Z',
    source_type: 'amqp',
  })
  expect(broker.prefetch).toBe(7)
  expect(started.events.counts.get('source_lag_time_seconds')).toBe(1) // without a time there is no lag
})

test('each message is accepted when delivered, or rejected if it cannot be delivered', async () => {
  const held: Batch[] = []
  await using broker = await startBroker()
  await using started = await source(broker, {}, { consume: (batch) => void held.push(batch) })
  broker.publish(text('one'), text('two'), text('three'), text('four'))
  await started.received(4)
  held[3]?.finalizer.release(1, 'delivered')
  held[1]?.finalizer.release(1, 'rejected')
  held[2]?.finalizer.release(1, 'errored')
  await vi.waitFor(() => expect(broker.left).toBe(1))
  expect(broker.accepted).toEqual(['four'])
  expect(broker.rejected).toEqual(['two', 'three'])
  const stopped = started.stop()
  held[0]?.finalizer.release(1, 'delivered') // the stop waits for this answer
  await stopped
  expect(broker.accepted).toEqual(['four', 'one'])
})

test('without acknowledgements a message is acknowledged when the pipeline has accepted it', async () => {
  let accept = () => {}
  await using broker = await startBroker()
  await using started = await source(
    broker,
    {},
    { acknowledgements: false, consume: () => new Promise((resolve) => (accept = resolve)) },
  )
  broker.publish(text('one'), text('two'))
  await started.received(1)
  expect(broker.accepted).toEqual([])
  accept()
  await started.received(2)
  await vi.waitFor(() => expect(broker.accepted).toEqual(['one']))
  accept()
  await vi.waitFor(() => expect(broker.accepted).toEqual(['one', 'two']))
})

test('a full pipeline holds received messages; a stop leaves them to the broker', async () => {
  await using broker = await startBroker()
  await using started = await source(
    broker,
    { prefetch_count: 10 },
    {
      consume(batch) {
        batch.finalizer.release(1, 'delivered')
        return new Promise(() => {})
      },
    },
  )
  broker.publish(...Array.from({ length: 100 }, (_, index) => text(String(index))))
  await started.received(1)
  await started.stop()
  expect(started.sent).toHaveLength(1)
  await vi.waitFor(() => expect(broker.left).toBe(99))
})

test('the source disconnects from a broker that sends more than requested', async () => {
  await using broker = await startBroker('penstock', { ignoresPrefetch: true })
  broker.publish(...Array.from({ length: 5000 }, (_, index) => text(String(index))))
  await using started = await source(broker, { prefetch_count: 10 }, { consume: () => new Promise(() => {}) })
  await vi.waitFor(() => expect(started.events.errors.length).toBeGreaterThan(0), 20_000)
  expect(started.events.errors[0]?.fields?.['reason']).toBe(
    'The broker sends more messages than `prefetch_count` allows, 10.',
  )
})

test('fewer messages are requested at a time if they are long', async () => {
  await using broker = await startBroker()
  const long = Buffer.alloc(20 << 20, 'x')
  broker.publish(...Array.from({ length: 6 }, () => ({ body: long })))
  const release: (() => void)[] = []
  await using started = await source(
    broker,
    { prefetch_count: 6, framing: { method: 'bytes' } },
    {
      consume(batch) {
        batch.finalizer.release(1, 'delivered')
        return new Promise<void>((resolve) => release.push(resolve))
      },
    },
  )
  await started.received(1)
  await vi.waitFor(() => expect(broker.consumers).toBe(0), 20_000)
  await vi.waitFor(() => {
    for (const go of release.splice(0)) go()
    expect(broker.left).toBe(0)
  }, 50_000)
  expect(broker.prefetch).toBeLessThan(6)
  expect(started.events.errors.map(({ fields }) => fields?.['reason'])[0]).toMatch(/exceed 67108864 bytes/)
})

test.each(['127.0.0.1', 'localhost'])(
  'the source does not connect to a broker at %s if the address is forbidden',
  async (host) => {
    await using broker = await startBroker()
    const egress = { deny: ['127.0.0.0/8', '::1'] }
    await using started = await source(
      broker,
      { connection_string: broker.url.replace('127.0.0.1', host) },
      { proxy: { enabled: true, http: undefined, https: undefined, no_proxy: undefined, egress } },
    )
    broker.publish(text('hi'))

    await vi.waitFor(() => {
      const [error] = started.events.errors
      expect(String(error?.fields?.['reason'])).toContain('rule T7')
    })
    await expect(started.source.healthcheck?.(AbortSignal.timeout(5000))).rejects.toThrow('rule T7')

    expect(broker.connections).toBe(0)
  },
)

test('returns messages that are given up at a stop to the queue', async () => {
  const held: Batch[] = []
  await using broker = await startBroker()
  await using started = await source(broker, {}, { consume: (batch) => void held.push(batch) })
  broker.publish(text('one'))
  await started.received(1)
  const stopped = started.stop()
  held[0]?.finalizer.release(1, 'errored')
  await stopped
  expect([broker.accepted, broker.rejected]).toEqual([[], []])
  await vi.waitFor(() => expect(broker.left).toBe(1))
})

/** A frame on the consumer's channel. */
const onChannel = (type: number, payload: Buffer) =>
  Buffer.concat([Buffer.from([type, 0, 1, 0, 0, 0, payload.length]), payload, Buffer.from([0xce])])

test.each<[string, (broker: Broker) => void]>([
  ['the connection breaks', (broker) => broker.cut()],
  ['the consumer is cancelled', (broker) => broker.cancel()],
  ['a frame is longer than any may be', (broker) => broker.send(Buffer.from([1, 0, 1, 0x40, 0, 0, 0, 1]))],
  ['a frame is invalid', (broker) => broker.send(Buffer.alloc(100, 0xff))],
  [
    'a message is longer than any may be',
    (broker) => {
      broker.send(onChannel(1, Buffer.from('003c003c' + '0174' + '0000000000000063' + '00' + '00' + '0171', 'hex')))
      broker.send(onChannel(2, Buffer.from('003c0000' + '0000010000000000' + '0000', 'hex')))
    },
  ],
  ['a method is unknown', (broker) => broker.send(Buffer.from([1, 0, 1, 0, 0, 0, 4, 0, 99, 0, 99, 0xce]))],
])('when %s, it consumes again, and gets unacknowledged messages again', async (_name, fault) => {
  const held: Batch[] = []
  await using broker = await startBroker()
  await using started = await source(broker, {}, { consume: (batch) => void held.push(batch) })
  broker.publish(text('one'), text('two'))
  await started.received(2)
  fault(broker)
  await started.received(4)
  // The receiver only counts answers to deliveries of the old connection; it sends those of the new one.
  held[0]?.finalizer.release(1, 'delivered')
  expect(started.events.counts.get('consumer_offset_updates_failed_total')).toBe(1)
  for (const batch of held.slice(1)) batch.finalizer.release(1, 'delivered')
  await vi.waitFor(() => expect(broker.accepted.toSorted()).toEqual(['one', 'two']))
  expect(broker.connections).toBe(2)
  expect(started.events.errors.map(({ type, stage }) => `${type} ${stage}`)).toEqual([
    'request_failed receiving',
    'acknowledgment_failed receiving',
    'acknowledgment_failed receiving',
  ])
})

const seed = 20_260_102
test.each(decodingCodecs)(
  `hostile messages of codec %s are acknowledged, and the source continues (seed ${seed})`,
  async (codec) => {
    const random = new Random(seed)
    for (const method of framingMethods) {
      // Protobuf does not work with delimiters, because its bytes may equal them.
      if (codec === 'native' && (method === 'newline_delimited' || method === 'character_delimited')) continue
      await using broker = await startBroker()
      await using started = await source(broker, { decoding: { codec }, framing: limitedTo(method, 2000) })
      const bodies = Array.from({ length: 50 }, () => {
        const bytes = hostileBytes(random, codec, 4000)
        return { body: random.next() < 0.5 ? bytes : framed(method, bytes) }
      })
      broker.publish(...bodies, { body: framed(method, goodFrame(codec, 'still here')) })
      await vi.waitFor(() => expect(broker.accepted).toHaveLength(51), 20_000)
      expect(plain(started.sent.at(-1))).toMatchObject({ message: 'still here' })
      expect(broker.connections).toBe(1)
    }
  },
)

test('the health check names the missing queue', async () => {
  await using broker = await startBroker()
  await using started = await source(broker)
  await started.source.healthcheck?.(AbortSignal.timeout(5000))
  broker.cut()
  await using lost = await source(broker, { connection_string: 'amqp://u:s3cret@127.0.0.1:1/' })
  const failure = lost.source.healthcheck?.(AbortSignal.timeout(5000))
  await expect(failure).rejects.toMatchObject({ message: expect.stringContaining('amqp://127.0.0.1:1/%2F') })
  await expect(failure).rejects.not.toMatchObject({ message: expect.stringContaining('s3cret') })
})

test('impossible options are refused', () => {
  const options = {
    connection_string: 'amqp://broker',
    tls: { enabled: true },
    framing: { method: 'character_delimited' },
  }
  expect(problemsOf('source', 'amqp', options).map(({ path }) => path)).toEqual([
    'framing.character_delimited.delimiter',
    'tls.enabled',
  ])
  expect(problemsOf('source', 'amqp', { connection_string: 'nonsense' })).toMatchObject([{ path: 'connection_string' }])
})

test('framing is `bytes` unless another method is named, and options of another one are reported, once', () => {
  const framing = { newline_delimited: { max_length: 10 } }
  const loaded = loadConfigObject({
    sources: { in: { type: 'amqp', connection_string: 'amqp://broker', framing } },
    sinks: { out: { type: 'blackhole', inputs: ['in'] } },
  })
  expect(loaded.ok ? loaded.warnings : loaded.problems).toMatchObject([
    {
      severity: 'warning',
      path: 'sources.in.framing.newline_delimited',
      message: '`newline_delimited` has no effect with method `bytes`',
      help: 'Set `method: newline_delimited`, or remove it.',
    },
  ])
})
