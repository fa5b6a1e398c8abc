import { expect, test } from 'vitest'
import { defaultAdaptive as defaults, destinations, type Second, simulate } from '../testing/adaptive-simulation.ts'
import { AdaptiveConcurrency } from './adaptive-concurrency.ts'

test('the limit rises by one per round trip while it is reached and round trips stay short', () => {
  const limit = new AdaptiveConcurrency(defaults)
  const limits: number[] = []
  for (let now = 0; now < 1000; now += 100) {
    limit.sent(limit.limit)
    limit.answered(now, now + 100, 'success')
    limits.push(limit.limit)
  }
  // The first measurement only initializes the average.
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

const limits = (seconds: readonly Second[]) => seconds.map(({ limit }) => limit)

test('the limit settles near the capacity of the destination', async () => {
  const late = limits(await simulate(destinations.knee)).slice(20)
  expect(Math.min(...late)).toBeGreaterThanOrEqual(6)
  expect(Math.max(...late)).toBeLessThanOrEqual(20)
})

test('the limit follows a destination that slows down, and one that recovers', async () => {
  const all = limits(await simulate(destinations.rising))
  const before = average(all.slice(20, 40))
  const slow = average(all.slice(100, 120))
  const after = average(all.slice(150))
  expect(before).toBeGreaterThan(25)
  expect(before).toBeLessThan(50)
  expect(slow).toBeLessThan(before * 0.75)
  expect(after).toBeGreaterThan(slow * 1.25)
})

test('the limit settles at the rate that a destination with status 429 accepts, and all events are delivered', async () => {
  const all = await simulate(destinations.limited)
  const late = limits(all).slice(20)
  expect(average(late)).toBeGreaterThan(10)
  expect(average(late)).toBeLessThan(18)
  const sum = (of: 'delivered' | 'refused') => all.reduce((total, second) => total + second[of], 0)
  expect(sum('delivered')).toBeGreaterThan(3 * sum('refused'))
})

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
