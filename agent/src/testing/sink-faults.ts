// The fault table of sinks that speak HTTP: what can go wrong between a sink and its destination. Events are delivered once it
// recovers, or counted as discarded; never both, never neither.

import { describe, expect, test } from 'vitest'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { type Answer, fakeDestination, fakeDestinationAt, type RecordedRequest, unusedPort } from './destination.ts'
import { log } from './events.ts'
import { startSink, type TestSink } from './harness.ts'

/** A sink of the table. */
export interface FaultySink {
  readonly type: string
  readonly options: (url: string) => object
  /** The messages (`m0`, `m1`, …) in a request, in their order. */
  readonly messages: (request: RecordedRequest) => string[]
  /** Statuses after which events are discarded; those of the others are retried. */
  readonly refusals?: readonly number[]
  /** The events with these messages; log events if not given. */
  readonly events?: (messages: readonly string[]) => (LogEvent | MetricEvent)[]
}

const refusals = [301, 400, 401, 403, 404, 501]

const well: Answer = { status: 200, body: '{"took":1,"errors":false,"items":[]}' }

const logs = (messages: readonly string[]) =>
  messages.map((message) => log({ message, timestamp: '2026-01-01T00:00:00Z' }))

const counts = ({ events: recorded }: TestSink) => ({
  sent: recorded.counts.get('component_sent_events_total') ?? 0,
  discarded: recorded.counts.get('component_discarded_events_total intentional=false') ?? 0,
})

/** Makes the tests of these sinks. */
export function testFaults(sinks: readonly FaultySink[]): void {
  describe.concurrent.each(sinks)('$type', (sink) => testSink(sink))
}

function testSink({ type, options, messages, refusals: refused = refusals, events: make = logs }: FaultySink): void {
  const events = () => make(['m0', 'm1', 'm2'])
  const passing: { fault: string; answer: Answer; requests: number }[] = [
    { fault: 'a reset in the middle of the body', answer: 'reset', requests: 1 },
    { fault: 'no answer in time', answer: 'hang', requests: 2 },
    { fault: 'an answer that is not HTTP', answer: 'garbage', requests: 2 },
    { fault: '408', answer: 408, requests: 2 },
    { fault: '413, for which it is halved', answer: 413, requests: 3 },
    { fault: '429', answer: 429, requests: 2 },
    { fault: '429 with Retry-After', answer: { status: 429, headers: { 'retry-after': '1' } }, requests: 2 },
    { fault: '500', answer: 500, requests: 2 },
    {
      fault: '503 with a date',
      answer: { status: 503, headers: { 'retry-after': new Date().toUTCString() } },
      requests: 2,
    },
    ...refusals
      .filter((status) => !refused.includes(status))
      .map((answer) => ({ fault: String(answer), answer, requests: 2 })),
  ]
  test.each(passing.filter(({ answer }) => typeof answer !== 'number' || !refused.includes(answer)))(
    'delivers all events after $fault',
    async ({ answer, requests }) => {
      await using destination = await fakeDestination(answer, well)
      // Short only where an answer never comes: a busy machine may take its time with the others.
      const request = answer === 'hang' ? { timeout_secs: 1 } : {}
      await using sink = await startSink(type, { ...options(destination.url), request })

      expect(await sink.deliver(events())).toBe('delivered')

      if (answer === 'hang') expect(destination.requests.length).toBeGreaterThanOrEqual(requests)
      else expect(destination.requests).toHaveLength(requests)
      const accepted = destination.requests.slice(answer === 'reset' ? 0 : 1)
      expect((answer === 'hang' ? accepted.slice(-1) : accepted).flatMap(messages)).toEqual(['m0', 'm1', 'm2'])
      expect(counts(sink)).toEqual({ sent: 3, discarded: 0 })
    },
  )

  test('delivers all events to a destination that was not there at first', async () => {
    const port = await unusedPort()
    await using sink = await startSink(type, options(`http://127.0.0.1:${port}`))
    const status = sink.deliver(events())
    await expect.poll(() => sink.events.errors.length).toBeGreaterThan(0)
    await using destination = await fakeDestinationAt(port, well)

    expect(await status).toBe('delivered')

    expect(destination.requests.flatMap(messages)).toEqual(['m0', 'm1', 'm2'])
    expect(counts(sink)).toEqual({ sent: 3, discarded: 0 })
    expect(sink.events.errors[0]).toMatchObject({ type: 'connection_failed', stage: 'sending', level: 'warn' })
  })

  test.each(refused)('discards the events after %s', async (answer) => {
    await using destination = await fakeDestination(answer)
    await using sink = await startSink(type, options(destination.url))

    expect(await sink.deliver(events())).toBe('rejected')

    expect(destination.requests).toHaveLength(1)
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
    expect(sink.events.errors).toEqual([
      expect.objectContaining({ type: 'request_failed', stage: 'sending', code: `http_response_${answer}` }),
    ])
  })

  test('discards alone the event that is too large for the destination', async () => {
    await using destination = await fakeDestination((request) => (messages(request).includes('m1') ? 413 : well))
    await using sink = await startSink(type, options(destination.url))

    expect(await sink.deliver(events())).toBe('rejected')

    expect(counts(sink)).toEqual({ sent: 2, discarded: 1 })
    // All, then the halves, then the halves of the half that is still too large.
    expect(destination.requests.map(messages)).toEqual([['m0', 'm1', 'm2'], ['m0'], ['m1', 'm2'], ['m1'], ['m2']])
  })

  test.each([
    { attempts: 0, status: 'errored', requests: 1 },
    { attempts: 1, status: 'rejected', requests: 2 },
  ])('gives up after $attempts retries', async ({ attempts, status, requests }) => {
    await using destination = await fakeDestination(500)
    await using sink = await startSink(type, { ...options(destination.url), request: { retry_attempts: attempts } })

    expect(await sink.deliver(events())).toBe(status)

    expect(destination.requests).toHaveLength(requests)
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
  })

  test('gives up what it holds when the time for a graceful stop is over', async () => {
    await using destination = await fakeDestination('hang')
    const sink = await startSink(type, options(destination.url))
    const status = sink.deliver(events())
    await destination.received(1)

    await sink[Symbol.asyncDispose]()

    expect(await status).toBe('errored')
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
  })
}
