// Brokers that confirm, refuse or give up sends before they have read them: the connection then still reads the memory of the messages.

import { expect, test, vi } from 'vitest'
import { LogEvent } from '../../event/log.ts'
import { type FakeBroker, fakeBroker } from '../../testing/fake-broker.ts'
import { startSink, type TestSink } from '../../testing/harness.ts'

/** Together, messages of this size are more than the buffers of a connection hold. */
const messageBytes = 450_000
const count = 34

const start = (broker: FakeBroker, request: object = {}) =>
  startSink('message_broker', {
    endpoint: broker.url,
    topic: 'logs',
    encoding: { codec: 'text' },
    batch: { max_bytes: 2 * messageBytes, max_events: 1 },
    request,
    connection_retry_options: { min_backoff_ms: 1 },
  })

const messages = (letter: string) =>
  Array.from({ length: count }, () => new LogEvent({ message: letter.repeat(messageBytes) }))

/** Registers the producer with a first message, and then sends others that the broker does not read. */
async function sendUnread(broker: FakeBroker, sink: TestSink): Promise<{ readonly status: Promise<string> }> {
  expect(await sink.write([new LogEvent({ message: 'first' })])).toBe('delivered')
  broker.read(false)
  const status = sink.write(messages('a'))
  const sentBytes = () => sink.events.counts.get('component_sent_bytes_total')
  await vi.waitFor(() => expect(sentBytes()).toBeGreaterThan(count * messageBytes))
  return { status }
}

/** The letters of each message that the broker has read, without the first message. */
const lettersOf = ({ sends }: FakeBroker) =>
  sends.slice(1).flatMap((send) => send.messages.map(({ text }) => [...new Set(text)].join('')))

const repeated = (letter: string) => Array.from({ length: count }, () => letter)

test('messages that the broker confirms early are still sent, and not overwritten by the next ones', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker)
  const { status } = await sendUnread(broker, sink)

  for (let sequence = 1; sequence <= count; sequence++) broker.confirm(0, BigInt(sequence))
  expect(await status).toBe('delivered')
  const next = sink.write(messages('b'))
  broker.read(true)

  expect(await next).toBe('delivered')
  expect(lettersOf(broker)).toEqual([...repeated('a'), ...repeated('b')])
})

test('messages of a session that the broker ends are still sent, and not overwritten by the next ones', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { retry_attempts: 0 })
  const { status } = await sendUnread(broker, sink)

  broker.closeProducer(0)
  expect(await status).toBe('errored')
  const next = sink.write(messages('b'))
  broker.read(true)

  expect(await next).toBe('delivered')
  expect(lettersOf(broker)).toEqual([...repeated('a'), ...repeated('b')])
})

test('a sink closes although its broker confirms messages and never reads them', async () => {
  await using broker = await fakeBroker()
  await using sink = await start(broker, { timeout_secs: 1 })
  const { status } = await sendUnread(broker, sink)

  for (let sequence = 1; sequence <= count; sequence++) broker.confirm(0, BigInt(sequence))
  expect(await status).toBe('delivered')

  await sink.sink.close()
  broker.read(true)
  await vi.waitFor(() => expect(broker.connections).toBe(0))
  // The broker receives the messages that the connection had written before it ended.
  expect(lettersOf(broker).length).toBeLessThan(count)
})

test('a sink that must stop at once does not wait for a broker that does not read', async () => {
  await using broker = await fakeBroker()
  const sink = await start(broker)
  const { status } = await sendUnread(broker, sink)

  await sink[Symbol.asyncDispose]()
  expect(await status).toBe('errored')
})
