import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Spacing } from './spacing.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test.each([
  ['nothing', 0, 200],
  ['a moment', 10, 200],
  ['a while', 150, 450],
  ['too long', 5000, 2000],
])('after work that took %s, the wait is proportional, within limits', async (_, tookMs, waitMs) => {
  const spacing = new Spacing({ minMs: 200, maxMs: 2000, factor: 3 })
  const work = spacing.measured(() => new Promise((done) => setTimeout(done, tookMs)))
  await vi.advanceTimersByTimeAsync(tookMs)
  await work
  expect(spacing.waitMs).toBe(waitMs)
})

test('failing work counts as well, and fails', async () => {
  const spacing = new Spacing({ minMs: 1, maxMs: 2000, factor: 2 })
  const work = spacing.measured(() => {
    vi.advanceTimersByTime(40)
    throw new Error('no')
  })
  await expect(work).rejects.toThrow('no')
  expect(spacing.waitMs).toBe(80)
})
