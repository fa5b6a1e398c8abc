import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Logger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { Watchdog } from './watchdog.ts'

let now = 0
/** Processor time of the process in milliseconds. */
let busy = 0
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  now = 1000
  busy = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  vi.spyOn(process, 'cpuUsage').mockImplementation(() => ({ user: busy * 1000, system: 0 }))
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** Lets time pass; if stalled, timers only fire at the end, and the process computes for a part of it. */
function pass(ms: number, stalled = false, part = 1): void {
  if (stalled) {
    now += ms - 500
    busy += ms * part
  }
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

test('a blocked event loop is reported with the duration and the component that used the time', () => {
  const { warnings, metrics, watchdog } = watched('parse')
  pass(5000)
  expect(warnings).toEqual([])
  pass(4500, true)
  expect(warnings).toEqual([{ stalled_ms: 4000, cpu_ms: 4500, component_id: 'parse' }])
  const [stalls] = metrics.snapshot().filter(({ name }) => name === 'event_loop_stall_seconds')
  expect(stalls?.samples[0]).toMatchObject({ histogram: { count: 1, sum: 4 } })
  expect(watchdog.trouble).toBeUndefined()
  watchdog[Symbol.dispose]()
})

test('too much blocked time in a minute makes the agent unhealthy until a minute has passed', () => {
  const { watchdog } = watched()
  pass(12_000, true)
  expect(watchdog.trouble).toBeUndefined()
  pass(5000)
  pass(12_000, true)
  expect(watchdog.trouble).toBe('Computations blocked the event loop for 23 seconds of the last minute.')
  pass(61_000)
  expect(watchdog.trouble).toBeUndefined()
  watchdog[Symbol.dispose]()
})

test('an unresponsive disk or a machine without CPU time for the process does not make the agent unhealthy', () => {
  const { watchdog, warnings } = watched()
  for (let stall = 0; stall < 50; stall++) pass(1500, true, 0.6)
  expect(warnings.length).toBe(50)
  expect(watchdog.trouble, 'many short computations, each stretched to seconds').toBeUndefined()
  now += 60_000
  expect(watchdog.trouble).toBeUndefined()
  watchdog[Symbol.dispose]()
})

test('a probe that arrives before the timer also detects the stall', () => {
  const { watchdog } = watched()
  now += 30_000
  busy += 30_000
  expect(watchdog.trouble).toMatch(/the event loop for 30 seconds/)
  watchdog[Symbol.dispose]()
})
