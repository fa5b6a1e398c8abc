import { expect, test } from 'vitest'
import { pause } from '../clock.ts'
import { FakeClock } from '../testing/clock.ts'
import { RecordedEvents } from '../testing/harness.ts'
import { fakeRequest, lettersOf } from '../testing/requests.ts'
import { type ConcurrencyLimit, fixedConcurrency } from './concurrency.ts'
import { type Attempt, type Call, Delivery, withTimeout } from './delivery.ts'
import { Endpoints } from './endpoints.ts'
import { RateLimit } from './rate-limit.ts'
import { RetryBackoff, type RetryOptions } from './retry.ts'

const failure = { type: 'request_failed' } as const
const retry: RetryOptions = { attempts: 10, initialMs: 1000, maxMs: 60_000, jitter: 'none' }

function start(
  call: Call,
  extra: {
    concurrency?: ConcurrencyLimit
    rate?: RateLimit
    retry?: RetryOptions
    authGraceMs?: number
    maxBodyBytes?: number
  } = {},
) {
  const clock = new FakeClock()
  const events = new RecordedEvents()
  const abandon = new AbortController()
  const kept: string[] = []
  const delivery = new Delivery(
    {
      concurrency: extra.concurrency ?? fixedConcurrency(1),
      rateLimit: extra.rate ?? new RateLimit(Number.MAX_SAFE_INTEGER, 1000),
      retry: extra.retry ?? retry,
      authGraceMs: extra.authGraceMs,
      maxBodyBytes: extra.maxBodyBytes,
      rejected: (count, written, message) => kept.push(`${count} ${written(2).join('')} ${message}`),
    },
    call,
    events,
    abandon.signal,
    clock,
  )
  return { clock, events, abandon, delivery, kept }
}

test.each([
  { initialMs: 1000, maxMs: 60_000, waits: [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 60, 60] },
  { initialMs: 2000, maxMs: 60_000, waits: [2, 2, 4, 6, 10, 16] },
  { initialMs: 5000, maxMs: 3000, waits: [3, 3, 3] },
])('waits follow the Fibonacci sequence from $initialMs', ({ initialMs, maxMs, waits }) => {
  const backoff = new RetryBackoff({ attempts: 100, initialMs, maxMs, jitter: 'none' })
  expect(waits.map(() => (backoff.next() ?? 0) / 1000)).toEqual(waits)
})

test('jitter adds at most half of the wait, within the maximum wait and the minimum that the destination requests', () => {
  const draw = (random: number, atLeast?: number) =>
    new RetryBackoff({ ...retry, jitter: 'full' }, () => random).next(atLeast)
  expect(draw(0)).toBe(1000)
  expect(draw(0.5)).toBe(1250)
  expect(draw(1)).toBe(1500)
  expect(draw(0.5, 5000)).toBe(5000)
  expect(draw(0.5, 500_000)).toBe(60_000) // within the maximum wait
})

test('jitter never exceeds the maximum wait', () => {
  const backoff = new RetryBackoff({ ...retry, maxMs: 1200, jitter: 'full' }, () => 1)
  expect([backoff.next(), backoff.next(), backoff.next()]).toEqual([1200, 1200, 1200])
})

test('there is no wait after the last attempt', () => {
  const backoff = new RetryBackoff({ ...retry, attempts: 1 })
  expect(backoff.next()).toBe(1000)
  expect(backoff.next()).toBeUndefined()
})

test('the number of requests that start in a window is limited', async () => {
  const starts: number[] = []
  const { clock, delivery } = start(
    async () => {
      starts.push(clock.now())
      return { outcome: 'delivered' }
    },
    { rate: new RateLimit(2, 1000), concurrency: fixedConcurrency(10) },
  )
  for (let index = 0; index < 5; index++) delivery.submit(fakeRequest())
  await clock.advance(5000)
  expect(starts).toEqual([0, 0, 1000, 1000, 2000])
})

test('a request that waits for its next attempt keeps its slot', async () => {
  const sent: string[] = []
  const answers: Attempt[] = [{ outcome: 'retry', failure }, { outcome: 'delivered' }, { outcome: 'delivered' }]
  const { clock, delivery } = start(async (request) => {
    sent.push(`${clock.now()} ${lettersOf(request)}`)
    return answers.shift() as Attempt
  })
  delivery.submit(fakeRequest('a'))
  delivery.submit(fakeRequest('b'))
  expect(delivery.full).toBe(true)
  await clock.advance(5000)
  expect(sent).toEqual(['0 a', '1000 a', '1000 b'])
  expect(delivery.full).toBe(false)
})

test('after a partial failure, only retriable events are sent again', async () => {
  const sent: string[] = []
  let outcome: string | undefined
  const answers: Attempt[] = [
    { outcome: 'partial', delivered: [0, 3], rejected: [2], retry: [1, 4], failure },
    { outcome: 'partial', delivered: [1], rejected: [], retry: [0], failure },
    { outcome: 'delivered' },
  ]
  const { clock, delivery, events } = start(async (request) => {
    sent.push(lettersOf(request))
    return answers.shift() as Attempt
  })
  delivery.submit(fakeRequest('abcde', (status) => (outcome = status)))
  await clock.advance(10_000)
  expect(sent).toEqual(['abcde', 'be', 'b'])
  expect(outcome).toBe('rejected')
  expect(events.counts.get('component_sent_events_total')).toBe(4)
  expect(events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

const refusal = { type: 'request_failed', fields: { status: 400 } } as const

test.each<{ what: string; answer: Attempt; maxBodyBytes?: number; attempts?: number; says: readonly string[] }>([
  { what: 'rejected', answer: { outcome: 'rejected', failure: refusal }, says: ['3 ab request_failed, status 400'] },
  {
    what: 'partly rejected',
    answer: { outcome: 'partial', delivered: [0], rejected: [1, 2], retry: [], failure: { ...refusal, code: 'bulk' } },
    says: ['2 bc bulk, status 400'],
  },
  {
    what: 'too large individually',
    answer: { outcome: 'delivered' },
    maxBodyBytes: 0,
    says: ['1 a too_large', '1 b too_large', '1 c too_large'],
  },
  { what: 'retried too often', answer: { outcome: 'retry', failure }, attempts: 1, says: ['3 ab request_failed'] },
  // The origin may send the event again.
  { what: 'never retried', answer: { outcome: 'retry', failure }, attempts: 0, says: [] },
  { what: 'accepted', answer: { outcome: 'delivered' }, says: [] },
])(
  'the report of events that are $what contains their encoded text: $says',
  async ({ answer, maxBodyBytes, attempts = 10, says }) => {
    const { clock, delivery, kept } = start(async () => answer, {
      retry: { ...retry, attempts },
      ...(maxBodyBytes === undefined ? {} : { maxBodyBytes }),
    })
    delivery.submit(fakeRequest('abc'))
    await clock.advance(10_000)
    expect(kept).toEqual(says)
  },
)

test('requests with rejected credentials are retried for the grace time, then fail at once, until a grace time without rejections', async () => {
  const unauthorized: Attempt = {
    outcome: 'rejected',
    failure: { ...refusal, fields: { status: 401 } },
    unauthorized: true,
  }
  const ended: string[] = []
  let isRefused = true
  let tries = 0
  const { clock, delivery, events } = start(
    async () => {
      tries++
      return isRefused ? unauthorized : { outcome: 'delivered' }
    },
    { authGraceMs: 60_000 },
  )
  const submit = (name: string) => delivery.submit(fakeRequest('a', (status) => ended.push(`${name} ${status}`)))
  submit('first')
  await clock.advance(59_000)
  expect(ended).toEqual([])
  expect(tries).toBeGreaterThan(5) // waits are short, because the credential may have been rotated
  await clock.advance(2_000)
  expect(ended).toEqual(['first rejected'])
  tries = 0
  submit('second')
  await clock.advance(0)
  expect([...ended, tries]).toEqual(['first rejected', 'second rejected', 1])
  await clock.advance(60_000)
  submit('third')
  await clock.advance(10_000)
  isRefused = false
  await clock.advance(15_000)
  expect(ended.at(-1)).toBe('third delivered')
  expect(events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
})

test.each([
  ['no grace time', { authGraceMs: 0 }],
  ['no retries', { authGraceMs: 60_000, retry: { ...retry, attempts: 0 } }],
])('with %s, rejected credentials discard the events at once', async (_, options) => {
  let tries = 0
  const { clock, delivery, kept } = start(async () => {
    tries++
    return { outcome: 'rejected', failure: refusal, unauthorized: true }
  }, options)
  delivery.submit(fakeRequest('ab'))
  await clock.advance(100_000)
  expect([tries, kept]).toEqual([1, ['2 ab request_failed, status 400']])
})

test('an attempt that times out is retried', async () => {
  const clock = new FakeClock()
  const abandoning = new AbortController().signal
  const hangs: Call = async (_, signal) => {
    await pause(100_000, signal, clock)
    signal.throwIfAborted()
    return { outcome: 'delivered' }
  }
  const attempt = withTimeout(hangs, 2000, clock)(fakeRequest(), abandoning)
  await clock.advance(2000)
  expect(await attempt).toMatchObject({ outcome: 'retry', failure: { type: 'timed_out' } })
})

test('waiting requests are discarded when the time for a graceful stop is over', async () => {
  const outcomes: string[] = []
  const { clock, delivery, abandon, events } = start(async () => ({ outcome: 'retry', failure }))
  delivery.submit(fakeRequest('ab', (status) => outcomes.push(status)))
  delivery.submit(fakeRequest('c', (status) => outcomes.push(status)))
  await clock.advance(100)
  abandon.abort()
  await delivery.drained()
  expect(outcomes).toEqual(['errored', 'errored'])
  expect(events.counts.get('component_discarded_events_total intentional=false')).toBe(3)
})

test('an endpoint that fails five times rests, and then a single request probes it', async () => {
  const clock = new FakeClock()
  const calls: string[] = []
  const active: number[] = []
  let well = false
  const endpoint =
    (name: string): Call =>
    async () => {
      calls.push(`${clock.now()} ${name}`)
      return name === 'bad' && !well ? { outcome: 'retry', failure } : { outcome: 'delivered' }
    }
  const endpoints = new Endpoints(
    ['good', 'bad'].map((name) => ({ call: endpoint(name), concurrency: fixedConcurrency(5) })),
    { initialMs: 1000, maxMs: 3000 },
    (attempt) => (attempt.outcome === 'delivered' ? 'healthy' : 'unhealthy'),
    (count) => active.push(count),
    clock,
    () => 0.99, // always selects the last ready endpoint, which is the bad one while it is ready
  )
  const signal = new AbortController().signal
  for (let index = 0; index < 7; index++) await endpoints.call(fakeRequest(), signal)
  expect(calls.map((call) => call.split(' ')[1])).toEqual(['bad', 'bad', 'bad', 'bad', 'bad', 'good', 'good'])
  expect(endpoints.limit).toBe(10)

  calls.length = 0
  await clock.advance(1000)
  await endpoints.call(fakeRequest(), signal) // the probe fails, so the endpoint rests twice as long
  await clock.advance(1999)
  await endpoints.call(fakeRequest(), signal)
  well = true
  await clock.advance(1)
  await endpoints.call(fakeRequest(), signal)
  await endpoints.call(fakeRequest(), signal)
  expect(calls).toEqual(['1000 bad', '2999 good', '3000 bad', '3000 bad'])
  expect(active).toEqual([2, 1, 2])
})

test('requests wait while all endpoints rest', async () => {
  const clock = new FakeClock()
  let calls = 0
  const endpoints = new Endpoints(
    [
      {
        concurrency: fixedConcurrency(5),
        call: async () => (++calls <= 5 ? { outcome: 'retry', failure } : { outcome: 'delivered' }),
      },
    ],
    { initialMs: 1000, maxMs: 3000 },
    (attempt) => (attempt.outcome === 'delivered' ? 'healthy' : 'unhealthy'),
    () => {},
    clock,
  )
  const signal = new AbortController().signal
  for (let index = 0; index < 5; index++) await endpoints.call(fakeRequest(), signal)
  const waiting = endpoints.call(fakeRequest(), signal)
  await clock.advance(999)
  expect(calls).toBe(5)
  await clock.advance(1)
  expect(await waiting).toEqual({ outcome: 'delivered' })
})

test('a request that exceeds the limit of the destination is halved before it is sent', async () => {
  const sent: string[] = []
  const { clock, delivery, events } = start(
    async (request) => {
      sent.push(lettersOf(request))
      return { outcome: 'delivered' }
    },
    { maxBodyBytes: 2 },
  )
  delivery.submit(fakeRequest('abcde'))
  await clock.advance(0)
  expect(sent).toEqual(['ab', 'c', 'de'])
  expect(events.counts.get('component_sent_events_total')).toBe(5)
})
