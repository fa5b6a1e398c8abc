import { expect, test } from 'vitest'
import { isWorthPolling, maxPollMs, nextPoll, pollIntervalMs } from './polling.ts'

const second = 1000

test.each([
  { about: 'a slow file is read as seldom as may be', bytes: 300, elapsed: 250, current: 250, interval: 250 },
  { about: '100 lines a second fit into a chunk', bytes: 7500, elapsed: 250, current: 250, interval: 250 },
  { about: '400 kB a second need two reads as often', bytes: 100_000, elapsed: 250, current: 250, interval: 62.5 },
  { about: '3 MB a second: a chunk comes in 16 ms', bytes: 750_000, elapsed: 250, current: 250, interval: 15.625 },
  { about: 'an even faster file is read in full chunks', bytes: 1e9, elapsed: 15, current: 15.625, interval: 15.625 },
  {
    about: 'a burst after a long silence does not count as a rate',
    bytes: 30_000,
    elapsed: 60_000,
    current: 250,
    interval: 250,
  },
  { about: 'two reads at once say nothing of the rate', bytes: 300, elapsed: 0.1, current: 250, interval: 250 },
  { about: 'a pause doubles the interval', bytes: 0, elapsed: 15.625, current: 15.625, interval: 31.25 },
  { about: 'so does a trickle', bytes: 10, elapsed: 15.625, current: 15.625, interval: 31.25 },
  { about: 'silence ends at the longest', bytes: 0, elapsed: 250, current: 250, interval: 250 },
  { about: 'a file that was cut is as one that is silent', bytes: -5000, elapsed: 125, current: 125, interval: 250 },
])('$about', ({ bytes, elapsed, current, interval }) => {
  expect(pollIntervalMs(bytes, elapsed, current)).toBe(interval)
})

test.each([
  { rate: 1_000, max: 5 },
  { rate: 30_000, max: 5 },
  { rate: 300_000, max: 12 },
  { rate: 1_500_000, max: 64 },
])(
  'at $rate bytes per second there are at most $max reads per second, and none exceeds the maximum wait',
  ({ rate, max }) => {
    let now = 7.25
    let end = now
    let interval = maxPollMs
    let reads = 0
    while (now < 10 * second) {
      const at = nextPoll(now, interval)
      expect(at - now).toBeLessThanOrEqual(maxPollMs + 2)
      now = at
      interval = pollIntervalMs(((now - end) * rate) / second, now - end, interval)
      end = now
      reads++
    }
    expect(reads / 10).toBeLessThanOrEqual(max)
  },
)

test('files with different intervals are due at the same moments', () => {
  const due = [250, 125, 62.5, 31.25, 15.625].map((interval) => nextPoll(245, interval))
  expect(new Set(due)).toEqual(new Set([250]))
  // A timer may fire slightly early, which must not schedule the same time again.
  expect(nextPoll(249.4, 250)).toBe(500)
})

test.each([
  { events: 1, files: 1, worth: false },
  { events: 5, files: 1, worth: false },
  { events: 6, files: 1, worth: true },
  { events: 6, files: 2, worth: false },
  { events: 900, files: 1000, worth: false },
  { events: 1100, files: 1000, worth: true },
])('$events writes a second in a folder of $files files are worth polling: $worth', ({ events, files, worth }) => {
  expect(isWorthPolling(events, files)).toBe(worth)
})
