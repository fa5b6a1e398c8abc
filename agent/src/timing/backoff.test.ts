import { expect, test } from 'vitest'
import { Backoff, jittered } from './backoff.ts'

test('the backoff grows with each failure, has full jitter, and resets after a time without failures', () => {
  let now = 0
  const backoff = new Backoff({
    initialMs: 800,
    maxMs: 30_000,
    jitter: 'full',
    resetMs: 120_000,
    random: () => 1,
    now: () => now,
  })
  expect([1, 2, 3, 4, 5, 6, 7].map(() => backoff.next())).toEqual([800, 1600, 3200, 6400, 12_800, 25_600, 30_000])
  now += 120_001
  expect(backoff.next()).toBe(800)
})

test('a wait doubles up to its limit, and resets after a success', () => {
  const backoff = new Backoff({ initialMs: 1000, maxMs: 5000, jitter: 'none' })
  expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([1000, 2000, 4000, 5000, 5000])
  backoff.reset()
  expect(backoff.next()).toBe(1000)
})

test.each([
  ['full', [0, 500, 1000]],
  ['half', [500, 750, 1000]],
  ['none', [1000, 1000, 1000]],
] as const)('jitter `%s` turns a second into a random wait in its range', (jitter, waits) => {
  expect([0, 0.5, 1].map((chance) => jittered(1000, jitter, () => chance))).toEqual(waits)
})
