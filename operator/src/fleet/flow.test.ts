import { expect, test } from 'vitest'
import { causeOf, Flow, flowWindowMs, steady, steadyLag } from './flow.ts'

const start = 1_800_000_000_000
const lateMs = 36_000

/** An agent with this many events a second, which reports at slightly irregular times. */
function report(flow: Flow, agents: number, perSecond: number, from: number, to: number, seen: (now: number) => void) {
  const last = Array.from({ length: agents }, (_, agent) => from - agent * 700)
  for (let now = from; now <= to; now += 1000) {
    for (let agent = 0; agent < agents; agent++) {
      const period = 30_000 * (0.8 + ((agent * 7 + now / 1000) % 5) / 10)
      const before = last[agent] as number
      if (now - before < period) continue
      const events = ((now - before) / 1000) * perSecond
      flow.add(before, now, { eventsIn: events, eventsOut: events, dropped: 0, errors: 0 })
      last[agent] = now
    }
    seen(now)
  }
}

test.each([1, 3, 40])('constant traffic of %i agents results in one figure', (agents) => {
  const flow = new Flow(lateMs)
  const written: number[] = []
  report(flow, agents, 10, start, start + 4 * flowWindowMs, (now) => {
    const figure = steady(flow.figures(now).eventsIn, written.at(-1))
    // The first minutes fill the window.
    if (now > start + 1.5 * flowWindowMs && figure !== written.at(-1)) written.push(figure)
  })
  expect(written).toEqual([3000 * agents])
})

test('figures of less than the whole window are used', () => {
  const flow = new Flow(lateMs)
  flow.add(start - 5000, start, { eventsIn: 7, eventsOut: 5, dropped: 2, errors: 1 })
  expect(flow.figures(start)).toEqual({ eventsIn: 7, eventsOut: 5, dropped: 2, errors: 1, buffered: 0 })
  expect(flow.figures(start + flowWindowMs + 120_000)).toMatchObject({ eventsIn: 0, dropped: 0 })
})

test('losses are recent for about a minute', () => {
  const flow = new Flow(lateMs)
  flow.add(start - 5000, start, { eventsIn: 7, eventsOut: 5, dropped: 2, errors: 1 })
  expect(flow.recent(start + 30_000).dropped).toBe(2)
  expect(flow.recent(start + 120_000).dropped).toBe(0)
})

test('a component that failed within the window is named, with its newest error', () => {
  const flow = new Flow(lateMs)
  const error = (message: string) => ({ reason: 'Rejecting', message, at: '2026-01-01T00:00:00Z', node: 'a' })
  flow.fail(start, 'out', 'sink', 2, error('first'))
  flow.fail(start + 40_000, 'out', 'sink', 3, error('second'))
  expect(flow.failing(start + 41_000)).toEqual([{ name: 'out', kind: 'sink', errors: 5, last: error('second') }])
  expect(flow.failing(start + 2 * flowWindowMs)).toEqual([])
})

test('the maximum of pending events is reported, so that it does not come and go', () => {
  const flow = new Flow(lateMs)
  flow.hold(start, 5000)
  flow.hold(start + 1000, 0)
  expect(flow.figures(start + 2000).buffered).toBe(5000)
})

test.each([
  { value: 104, before: undefined, says: 100 },
  { value: 106, before: 100, says: 100 }, // as near as the next figure, 110
  { value: 109, before: 100, says: 110 },
  { value: 0, before: 100, says: 0 },
  { value: 3, before: 2, says: 3 },
])('$value after $before is reported as $says', ({ value, before, says }) => {
  expect(steady(value, before)).toBe(says)
})

test.each([
  { seconds: 3, before: undefined, says: 0 }, // the time between two checks
  { seconds: 3, before: 0, says: 0 },
  { seconds: 64.7, before: undefined, says: 65 },
  { seconds: 128, before: 0, says: 130 },
  { seconds: 75, before: 65, says: 65 }, // about the same
  { seconds: 85, before: 65, says: 85 },
  { seconds: 4, before: 5, says: 5 },
  { seconds: 3, before: 5, says: 0 },
  { seconds: 0, before: 65, says: 0 },
])('a lag of $seconds s after $before is reported as $says', ({ seconds, before, says }) => {
  expect(steadyLag(seconds, before)).toBe(says)
})

test.each([
  ['SomeEventsDropped', 'transforms[parse] on n2: parse_json failed'],
  ['NoEventsDelivered', 'sinks[out] on n1: Status 401.'],
  ['BufferFillingUp', 'sinks[out] on n1: Status 401.'],
  ['Lagging', undefined],
  ['Flowing', undefined],
])('the cause of %s is the last error of the component with the most errors that explain it', (reason, cause) => {
  const last = (message: string, node: string) => ({ reason: 'Error', message, at: '', node })
  const failing = [
    { name: 'out', kind: 'sink', errors: 3, last: last('Status 401.', 'n1') },
    { name: 'parse', kind: 'transform', errors: 9, last: last('parse_json failed', 'n2') },
    { name: 'quiet', kind: 'sink', errors: 99, last: undefined },
  ]
  expect(causeOf(reason, failing)).toBe(cause)
  expect(causeOf(reason, [])).toBeUndefined()
})
