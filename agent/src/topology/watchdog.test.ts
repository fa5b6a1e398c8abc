import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Logger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { Watchdog } from './watchdog.ts'

let now = 0
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  now = 1000
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** Lets time pass; with `stalled`, timers only fire at the end. */
function pass(ms: number, stalled = false): void {
  if (stalled) now += ms - 500
  for (let left = stalled ? 500 : ms; left > 0; left -= 500) {
    now += 500
    vi.advanceTimersByTime(500)
  }
}

function watched(culprit?: string) {
  const warnings: object[] = []
  const metrics = new Metrics()
  const logger = { warn: (fields: object) => warnings.push(fields) } as unknown as Logger
  return { warnings, metrics, watchdog: new Watchdog({ logger, metrics, culprit: () => culprit }) }
}

test('a loop that stood still is reported with its length and the component that used the time', () => {
  const { warnings, metrics, watchdog } = watched('parse')
  pass(5000)
  expect(warnings).toEqual([])
  pass(4500, true)
  expect(warnings).toEqual([{ stalled_ms: 4000, cpu_ms: expect.any(Number), component_id: 'parse' }])
  const [stalls] = metrics.snapshot().filter(({ name }) => name === 'event_loop_stall_seconds')
  expect(stalls?.samples[0]).toMatchObject({ histogram: { count: 1, sum: 4 } })
  expect(watchdog.trouble).toBeUndefined()
  watchdog[Symbol.dispose]()
})

test('too much of it in a minute makes the agent unhealthy until a minute has passed', () => {
  const { watchdog } = watched()
  pass(12_000, true)
  expect(watchdog.trouble).toBeUndefined()
  pass(5000)
  pass(12_000, true)
  expect(watchdog.trouble).toBe('The event loop was blocked for 23 seconds of the last minute.')
  pass(61_000)
  expect(watchdog.trouble).toBeUndefined()
  watchdog[Symbol.dispose]()
})

test('a probe that is answered before the timer sees the stall too', () => {
  const { watchdog } = watched()
  now += 30_000
  expect(watchdog.trouble).toMatch(/was blocked for 30 seconds/)
  watchdog[Symbol.dispose]()
})
