// Requests whose bodies another thread compresses.

import { expect, test } from 'vitest'
import { BodyPool } from '../event/body.ts'
import { FakeClock } from '../testing/clock.ts'
import { RecordedEvents } from '../testing/harness.ts'
import { fakeRequest, lettersOf } from '../testing/requests.ts'
import { fixedConcurrency } from './concurrency.ts'
import { type Call, Delivery } from './delivery.ts'
import { RateLimit } from './rate-limit.ts'
import type { Codec } from './request.ts'

/** A codec that "compresses" to capital letters. The test decides when and in which order compressions end. */
function slowCodec() {
  const running: { readonly letters: string; end(error?: Error): void }[] = []
  const upper = (body: Buffer) => Buffer.from(body.toString().toUpperCase())
  const codec: Codec = {
    compress: upper,
    compressOnPool: (body) => {
      const letters = body.toString()
      return new Promise((resolve, reject) => {
        running.push({ letters, end: (error) => (error === undefined ? resolve(upper(body)) : reject(error)) })
      })
    },
    decompress: (payload) => Buffer.from(payload.toString().toLowerCase()),
  }
  return { codec, running }
}

function start(call: Call, concurrency = 1, maxBodyBytes?: number) {
  const clock = new FakeClock()
  const events = new RecordedEvents()
  const abandon = new AbortController()
  const kept: string[] = []
  const delivery = new Delivery(
    {
      concurrency: fixedConcurrency(concurrency),
      rateLimit: new RateLimit(Number.MAX_SAFE_INTEGER, 1000),
      retry: { attempts: 10, initialMs: 1000, maxMs: 60_000, jitter: 'none' },
      maxBodyBytes,
      rejected: (count, written, message) => kept.push(`${count} ${written(2).join('')} ${message}`),
    },
    call,
    events,
    abandon.signal,
    clock,
  )
  return { clock, events, abandon, delivery, kept }
}

test('requests are sent in order, whichever is compressed first', async () => {
  const sent: string[] = []
  const { clock, delivery } = start(async (request) => {
    sent.push(lettersOf(request))
    return { outcome: 'delivered' }
  })
  const { codec, running } = slowCodec()
  for (const letters of ['ab', 'cd', 'ef']) delivery.submit(fakeRequest(letters, undefined, codec))
  expect(running.map(({ letters }) => letters)).toEqual(['ab', 'cd', 'ef'])
  expect(delivery.full).toBe(true) // a request occupies its slot while it is compressed
  running[2]?.end()
  running[1]?.end()
  await clock.advance(0)
  expect(sent).toEqual([])
  running[0]?.end()
  await clock.advance(0)
  expect(sent).toEqual(['AB', 'CD', 'EF'])
})

test('a stop waits for running compressions', async () => {
  const statuses: string[] = []
  const { clock, delivery, events } = start(async () => ({ outcome: 'delivered' }))
  const { codec, running } = slowCodec()
  delivery.submit(fakeRequest('ab', (status) => statuses.push(status), codec))
  let closed = false
  const closing = delivery.close().then(() => {
    closed = true
  })
  await clock.advance(60_000)
  expect(closed).toBe(false)
  running[0]?.end()
  await closing
  expect(statuses).toEqual(['delivered'])
  expect(events.counts.get('component_sent_events_total')).toBe(2)
})

test('a body returns to the pool only after its compression, even if the time for a stop is over earlier', async () => {
  const { clock, delivery, events, abandon } = start(async () => ({ outcome: 'delivered' }))
  const { codec, running } = slowCodec()
  const pool = new BodyPool(64)
  const taken: string[] = []
  for (const letters of ['ab', 'cd']) {
    delivery.submit(fakeRequest(letters, (status) => taken.push(status), codec, pool))
  }
  abandon.abort()
  await clock.advance(0)
  const other = pool.take()
  other.writeText('xy')
  for (const each of running) each.end()
  await delivery.close()
  expect(taken).toEqual(['errored', 'errored'])
  expect(events.counts.get('component_discarded_events_total intentional=false')).toBe(4)
  const after = [pool.take(), pool.take()]
  expect(after).not.toContain(other)
  // Nothing overwrote the bytes while the other thread read them.
  expect(after.map((body) => body.buffer.toString('utf8', 0, 2)).sort()).toEqual(['ab', 'cd'])
})

test('halves of a request and retried parts are compressed too', async () => {
  const sent: string[] = []
  let first = true
  const { clock, delivery } = start(
    async (request) => {
      sent.push(lettersOf(request))
      const again = first
      first = false
      return again
        ? { outcome: 'partial', delivered: [0], rejected: [], retry: [1], failure: { type: 'request_failed' } }
        : { outcome: 'delivered' }
    },
    1,
    2,
  )
  const { codec, running } = slowCodec()
  const statuses: string[] = []
  delivery.submit(fakeRequest('abcd', (status) => statuses.push(status), codec))
  for (let ended = 0; ended < 4; ended++) {
    await clock.advance(2000)
    running[ended]?.end()
  }
  await delivery.close()
  expect(running.map(({ letters }) => letters)).toEqual(['abcd', 'ab', 'cd', 'b'])
  expect(sent).toEqual(['AB', 'B', 'CD'])
  expect(statuses).toEqual(['delivered'])
})

test.each(['on another thread', 'on the main thread'])('a failed compression %s is an error', async (where) => {
  const error = new Error('no memory')
  const { codec, running } = slowCodec()
  const failing: Codec =
    where === 'on another thread'
      ? codec
      : {
          ...codec,
          compressOnPool: undefined,
          compress: () => {
            throw error
          },
        }
  const { delivery, events, kept } = start(async () => ({ outcome: 'delivered' }))
  const statuses: string[] = []
  delivery.submit(fakeRequest('ab', (status) => statuses.push(status), failing))
  delivery.submit(fakeRequest('c'))
  running[0]?.end(error)
  await delivery.close()
  expect(statuses).toEqual(['rejected'])
  expect(events.errors).toEqual([
    expect.objectContaining({
      type: 'encoder_failed',
      stage: 'sending',
      fields: expect.objectContaining({ error, body_bytes: 2, events: 2 }),
    }),
  ])
  expect(kept).toEqual(['2 ab encoder_failed'])
  expect(events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
  expect(events.counts.get('component_sent_events_total')).toBe(1)
})
