// Batches that another thread compresses stay in order. A failed compression ends only its own events with an error.

import { type ZstdOptions, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { erased } from '../../component.ts'
import { type CompressionPlatform, platform } from '../../delivery/compression.ts'
import { log } from '../../testing/events.ts'
import { fakeBroker } from '../../testing/fake-broker.ts'
import { startSink } from '../../testing/harness.ts'
import { buildBrokerSink, messageBroker } from '../message_broker.ts'
import { brokerCodec } from './compression.ts'

type Done = (error: Error | null, payload: Buffer) => void

/** A compression whose other threads end when the test says so. */
class SteppedCompression implements Disposable {
  /** The bodies that other threads are compressing. */
  readonly running: { readonly length: number; end(error?: Error): void }[] = []
  /** An error that compression on the main thread throws. */
  fault: Error | undefined

  readonly #platform = {
    ...platform,
    zstdCompress: (body: Buffer, options: ZstdOptions, done: Done) => {
      this.running.push({
        length: body.length,
        end: (error) => done(error ?? null, error === undefined ? zstdCompressSync(body, options) : Buffer.alloc(0)),
      })
    },
    zstdCompressSync: (body: Buffer, options: ZstdOptions) => {
      if (this.fault !== undefined) throw this.fault
      return zstdCompressSync(body, options)
    },
  } as CompressionPlatform

  start(given: object, cpus = 2) {
    const codec = brokerCodec('zstd', cpus, this.#platform)
    const build: typeof messageBroker.build = (options, context) => buildBrokerSink(options, context, codec)
    return startSink(erased({ ...messageBroker, build }), given)
  }

  /** Ends all compressions, because their number in the process is limited. */
  [Symbol.dispose](): void {
    for (const { end } of this.running) end()
  }
}

/** Two messages per batch, which makes a batch too large for the main thread. */
const long = (name: string) => log({ message: `${name}${'.'.repeat(100_000)}` })
const options = (url: string) => ({
  endpoint: url,
  topic: 'logs',
  encoding: { codec: 'text' },
  compression: 'zstd',
  batch: { max_events: 2, max_bytes: 1_000_000 },
  connection_retry_options: { min_backoff_ms: 1 },
})
const names = (broker: { readonly messages: readonly { readonly text: string }[] }) =>
  broker.messages.map(({ text }) => text.replaceAll('.', ''))

test('batches leave in order, in any order of compression', async () => {
  using threads = new SteppedCompression()
  await using broker = await fakeBroker()
  await using sink = await threads.start(options(broker.url))
  const delivered = sink.deliver(['a', 'b', 'c', 'd', 'e', 'f'].map(long))
  await expect.poll(() => threads.running.length).toBe(2) // the main thread compresses the third: two threads are busy
  expect(threads.running.map(({ length }) => length > 200_000)).toEqual([true, true])
  threads.running[1]?.end()
  await expect.poll(() => broker.producers.length).toBe(1)
  expect(broker.sends).toEqual([])
  threads.running[0]?.end()
  expect(await delivered).toBe('delivered')
  expect(names(broker)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  expect(broker.stored.map(({ count, compression }) => [count, compression])).toEqual([
    [2, 3],
    [2, 3],
    [2, 3],
  ])
})

test('with one core, or for a small batch, the main thread compresses', async () => {
  using threads = new SteppedCompression()
  await using broker = await fakeBroker()
  await using sink = await threads.start(options(broker.url))
  expect(await sink.deliver([log({ message: 'a' }), log({ message: 'b' })])).toBe('delivered')
  await using other = await threads.start(options(broker.url), 1)
  expect(await other.deliver([long('c'), long('d')])).toBe('delivered')
  expect(threads.running).toEqual([])
  expect(names(broker)).toEqual(['a', 'b', 'c', 'd'])
})

test('a batch that is too large is halved, and its halves are compressed too', async () => {
  using threads = new SteppedCompression()
  await using broker = await fakeBroker({ maxMessageBytes: 60_000 })
  await using sink = await threads.start({
    ...options(broker.url),
    batch: { max_events: 4, max_bytes: 4_000_000 },
  })
  // Random letters, which do not compress below this size.
  const random = (name: string) =>
    log({ message: `${name}.${Array.from({ length: 70_000 }, () => Math.random().toString(36)[2] ?? '0').join('')}` })
  const delivered = sink.deliver(['a', 'b', 'c', 'd'].map(random))
  // The whole batch, then each of its halves.
  for (let ended = 0; ended < 3; ended++) {
    await expect.poll(() => threads.running.length).toBeGreaterThan(ended)
    threads.running[ended]?.end()
  }
  expect(await delivered).toBe('delivered')
  expect(broker.messages.map(({ text }) => text.slice(0, 2))).toEqual(['a.', 'b.', 'c.', 'd.'])
})

test.each(['on another thread', 'on the main thread'])(
  'a compression that fails %s discards only its own events',
  async (where) => {
    using threads = new SteppedCompression()
    await using broker = await fakeBroker()
    const cpus = where === 'on another thread' ? 2 : 1
    const error = new Error('no memory')
    if (cpus === 1) threads.fault = error
    await using sink = await threads.start(options(broker.url), cpus)
    const first = sink.write([long('a'), long('b')])
    if (cpus === 2) {
      await expect.poll(() => threads.running.length).toBe(1)
      threads.running[0]?.end(error)
    }
    expect(await first).toBe('rejected')
    threads.fault = undefined
    expect(await sink.deliver([log({ message: 'c' })])).toBe('delivered')
    expect(names(broker)).toEqual(['c'])
    expect(sink.events.errors).toEqual([
      expect.objectContaining({
        type: 'encoder_failed',
        stage: 'sending',
        fields: expect.objectContaining({ error, events: 2 }),
      }),
    ])
    expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
    expect(sink.events.counts.get('component_sent_events_total')).toBe(1)
  },
)

test('a stop waits for running compressions', async () => {
  using threads = new SteppedCompression()
  await using broker = await fakeBroker()
  await using sink = await threads.start(options(broker.url))
  const delivered = sink.deliver([long('a'), long('b')])
  await expect.poll(() => threads.running.length).toBe(1)
  let closed = false
  const closing = sink.sink.close().then(() => {
    closed = true
  })
  await expect.poll(() => broker.producers.length).toBe(1)
  expect(closed).toBe(false)
  threads.running[0]?.end()
  await closing
  expect(await delivered).toBe('delivered')
})
