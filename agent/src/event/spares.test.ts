import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Spares } from './spares.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const checkMs = 10_000

function filled(count: number, max = count): Spares<number> {
  const spares = new Spares<number>(max)
  for (let spare = 0; spare < count; spare++) spares.give(spare)
  return spares
}

function countOf(spares: Spares<number>): number {
  let count = 0
  while (spares.take() !== undefined) count++
  return count
}

test('keeps at most the limit', () => {
  expect(countOf(filled(500, 8))).toBe(8)
})

test('releases objects that only a burst needed, and keeps those in use', () => {
  const spares = filled(8)
  for (let second = 0; second < 30; second++) {
    const used = [spares.take(), spares.take()]
    for (const spare of used) if (spare !== undefined) spares.give(spare)
    vi.advanceTimersByTime(1000)
  }
  expect(countOf(spares)).toBe(2)
})

test('releases all objects when idle, and leaves no timer', () => {
  const spares = filled(8)
  vi.advanceTimersByTime(checkMs)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(checkMs)
  expect(vi.getTimerCount()).toBe(0)
  expect(countOf(spares)).toBe(0)
})

test('a timer does not keep the process alive', () => {
  vi.useRealTimers()
  const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  filled(1)
  expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout')).toHaveLength(before)
})
