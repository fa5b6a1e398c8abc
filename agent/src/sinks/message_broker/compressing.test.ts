// Batches that another thread compresses stay in order. A failed compression ends only its own events with an error.

import type { ZstdOptions } from 'node:zlib'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { log } from '../../testing/events.ts'
import { fakeBroker } from '../../testing/fake-broker.ts'
import { startSink } from '../../testing/harness.ts'

type Done = (error: Error | null, payload: Buffer) => void

const aside = vi.hoisted(() => ({
  /** The bodies that other threads are compressing. */
  running: [] as { readonly length: number; end(error?: Error): void }[],
  /** An error that compression on the main thread throws. */
  fault: undefined as Error | undefined,
  cpus: 2,
}))

vi.mock('node:zlib', async (original) => {
  const zlib = (await original()) as typeof import('node:zlib')
  const zstdCompress = (body: Buffer, options: ZstdOptions, done: Done) => {
    aside.running.push({
      length: body.length,
      end: (error) => done(error ?? null, error === undefined ? zlib.zstdCompressSync(body, options) : Buffer.alloc(0)),
    })
  }
  const zstdCompressSync = (body: Buffer, options: ZstdOptions) => {
    if (aside.fault !== undefined) throw aside.fault
    return zlib.zstdCompressSync(body, options)
  }
  return { ...zlib, default: zlib, zstdCompress, zstdCompressSync }
})
vi.mock('../../delivery/cpu-limit.ts', () => ({ cpuLimit: () => aside.cpus }))

beforeEach(() => {
  aside.running.length = 0
  aside.fault = undefined
  aside.cpus = 2
})
afterEach(() => {
  for (const { end } of aside.running.splice(0)) end()
})

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

test('batches leave in their order, whichever is compressed first', async () => {
  await using broker = await fakeBroker()
  await using sink = await startSink('message_broker', options(broker.url))
  const delivered = sink.deliver(['a', 'b', 'c', 'd', 'e', 'f'].map(long))
  await expect.poll(() => aside.running.length).toBe(2) // the main thread compresses the third: two threads are busy
  expect(aside.running.map(({ length }) => length > 200_000)).toEqual([true, true])
  aside.running[1]?.end()
  await expect.poll(() => broker.producers.length).toBe(1)
  expect(broker.sends).toEqual([])
  aside.running[0]?.end()
  expect(await delivered).toBe('delivered')
  expect(names(broker)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  expect(broker.stored.map(({ count, compression }) => [count, compression])).toEqual([
    [2, 3],
    [2, 3],
    [2, 3],
  ])
})

test('with one core, or for a small batch, the main thread compresses', async () => {
  await using broker = await fakeBroker()
  await using sink = await startSink('message_broker', options(broker.url))
  expect(await sink.deliver([log({ message: 'a' }), log({ message: 'b' })])).toBe('delivered')
  aside.cpus = 1
  await using other = await startSink('message_broker', options(broker.url))
  expect(await other.deliver([long('c'), long('d')])).toBe('delivered')
  expect(aside.running).toEqual([])
  expect(names(broker)).toEqual(['a', 'b', 'c', 'd'])
})

test('a batch that is too large is halved, and its halves are compressed too', async () => {
  await using broker = await fakeBroker({ maxMessageBytes: 60_000 })
  await using sink = await startSink('message_broker', {
    ...options(broker.url),
    batch: { max_events: 4, max_bytes: 4_000_000 },
  })
  // Random letters, which do not compress below this size.
  const random = (name: string) =>
    log({ message: `${name}.${Array.from({ length: 70_000 }, () => Math.random().toString(36)[2] ?? '0').join('')}` })
  const delivered = sink.deliver(['a', 'b', 'c', 'd'].map(random))
  // The whole batch, then each of its halves.
  for (let ended = 0; ended < 3; ended++) {
    await expect.poll(() => aside.running.length).toBeGreaterThan(ended)
    aside.running[ended]?.end()
  }
  expect(await delivered).toBe('delivered')
  expect(broker.messages.map(({ text }) => text.slice(0, 2))).toEqual(['a.', 'b.', 'c.', 'd.'])
})

test.each(['on another thread', 'on the main thread'])(
  'a compression that fails %s discards its events alone',
  async (where) => {
    await using broker = await fakeBroker()
    aside.cpus = where === 'on another thread' ? 2 : 1
    const error = new Error('no memory')
    if (aside.cpus === 1) aside.fault = error
    await using sink = await startSink('message_broker', options(broker.url))
    const first = sink.write([long('a'), long('b')])
    if (aside.cpus === 2) {
      await expect.poll(() => aside.running.length).toBe(1)
      aside.running[0]?.end(error)
    }
    expect(await first).toBe('rejected')
    aside.fault = undefined
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

test('a stop waits for what is being compressed', async () => {
  await using broker = await fakeBroker()
  await using sink = await startSink('message_broker', options(broker.url))
  const delivered = sink.deliver([long('a'), long('b')])
  await expect.poll(() => aside.running.length).toBe(1)
  let closed = false
  const closing = sink.sink.close().then(() => {
    closed = true
  })
  await expect.poll(() => broker.producers.length).toBe(1)
  expect(closed).toBe(false)
  aside.running[0]?.end()
  await closing
  expect(await delivered).toBe('delivered')
})
