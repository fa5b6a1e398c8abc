import { expect, test } from 'vitest'
import { loggingEvents } from '../telemetry/component-events.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { FakeClock } from '../testing/clock.ts'
import { fakeRequest } from '../testing/requests.ts'
import { AdaptiveConcurrency, type AdaptiveOptions } from './adaptive-concurrency.ts'
import { pause } from './clock.ts'
import { type Attempt, Delivery } from './delivery.ts'
import { RateLimit } from './rate-limit.ts'

const defaults: AdaptiveOptions = {
  initial_concurrency: 1,
  max_concurrency_limit: 200,
  decrease_ratio: 0.9,
  ewma_alpha: 0.4,
  rtt_deviation_scale: 2.5,
}

test('the limit rises by one per round trip while it is reached and round trips stay short', () => {
  const limit = new AdaptiveConcurrency(defaults)
  const limits: number[] = []
  for (let now = 0; now < 1000; now += 100) {
    limit.sent(limit.limit)
    limit.answered(now, now + 100, 'success')
    limits.push(limit.limit)
  }
  // The first measurement only seeds the average.
  expect(limits).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})

test.each([
  { what: 'the limit is not reached', inFlight: 0, rtt: 90, result: 'success' as const, limit: 10 },
  { what: 'the destination pushes back', inFlight: 10, rtt: 100, result: 'back_pressure' as const, limit: 9 },
  { what: 'round trips become longer', inFlight: 10, rtt: 150, result: 'success' as const, limit: 9 },
])('when $what the limit becomes $limit', ({ inFlight, rtt, result, limit }) => {
  const adaptive = new AdaptiveConcurrency({ ...defaults, initial_concurrency: 10 })
  adaptive.sent(1)
  adaptive.answered(0, 100, 'success')
  adaptive.sent(inFlight)
  adaptive.answered(200, 200 + rtt, result)
  expect(adaptive.limit).toBe(limit)
})

test('the limit never leaves its bounds', () => {
  const adaptive = new AdaptiveConcurrency({ ...defaults, max_concurrency_limit: 2 })
  for (let now = 0; now < 1000; now += 100) {
    adaptive.sent(9)
    adaptive.answered(now, now + 100, 'success')
  }
  expect(adaptive.limit).toBe(2)
  for (let now = 1000; now < 3000; now += 100) adaptive.answered(now, now + 100, 'back_pressure')
  expect(adaptive.limit).toBe(1)
})

/** A destination that bears so many requests at once: more of them make each of them slower. */
async function simulate(capacity: number, seconds: number) {
  const clock = new FakeClock()
  const abandoning = new AbortController()
  const concurrency = new AdaptiveConcurrency(defaults)
  let inFlight = 0
  let answered = 0
  const call = async (): Promise<Attempt> => {
    inFlight++
    const crowd = Math.max(1, inFlight / capacity)
    await pause(clock, 100 * crowd * crowd, abandoning.signal)
    inFlight--
    answered++
    return { outcome: 'delivered' }
  }
  const delivery = new Delivery(
    {
      concurrency,
      rateLimit: new RateLimit(Number.MAX_SAFE_INTEGER, 1000),
      retry: { attempts: 0, initialMs: 1000, maxMs: 1000, jitter: 'none' },
    },
    call,
    loggingEvents(silentLogger),
    abandoning.signal,
    clock,
  )
  let submitted = 0
  const limits: number[] = []
  for (let second = 0; second < seconds; second++) {
    for (; submitted < answered + 500; submitted++) delivery.submit(fakeRequest())
    await clock.advance(1000)
    limits.push(concurrency.limit)
  }
  abandoning.abort()
  return limits
}

test('the limit settles near what the destination bears', async () => {
  const limits = await simulate(10, 60)
  const late = limits.slice(20)
  expect(Math.min(...late)).toBeGreaterThanOrEqual(6)
  expect(Math.max(...late)).toBeLessThanOrEqual(20)
})
