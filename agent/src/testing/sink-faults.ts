// The fault table of HTTP sinks: faults between a sink and its destination. Events are either delivered after recovery or counted as
// discarded, but never both or neither.

import { describe, expect, test, vi } from 'vitest'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { type Answer, fakeDestination, fakeDestinationAt, type RecordedRequest } from './destination.ts'
import { log } from './events.ts'
import { freePort } from './free-port.ts'
import { startSink, type TestSink } from './harness.ts'
import { Random } from './random.ts'

/** A sink of the table. */
export interface FaultySink {
  readonly type: string
  /** The mode of sending, for a sink with several modes. */
  readonly way?: string
  readonly options: (url: string) => object
  /** The messages (`m0`, `m1`, …, `m39`) of a request, in order. */
  readonly messages: (request: RecordedRequest) => string[]
  /** Statuses after which events are discarded. Other statuses are retried. */
  readonly refusals?: readonly number[]
  /** Creates events with these messages; log events by default. */
  readonly events?: (messages: readonly string[]) => (LogEvent | MetricEvent)[]
  /** The vendor's limit for bodies, and options with which it applies before compression. */
  readonly limit?: { readonly bytes: number; readonly options?: object }
}

/** Reasons for discarding events. */
const givenUp = 'Service call failed. No retries or retries exhausted.'
const tooLarge = 'The event is larger than the destination accepts.'
const stopped = 'The time limit for a graceful stop is over.'

const refusals = [301, 400, 401, 403, 404, 501]
/** Rejections of credentials, which are retried for some time. */
const unauthorized = [401, 403]

const well: Answer = { status: 200, body: '{"took":1,"errors":false,"items":[]}' }

const seed = 20_260_103

const logs = (messages: readonly string[]) =>
  messages.map((message) => log({ message, timestamp: '2026-01-01T00:00:00Z' }))

const counts = ({ events: recorded }: TestSink) => ({
  sent: recorded.counts.get('component_sent_events_total') ?? 0,
  discarded: recorded.counts.get('component_discarded_events_total intentional=false') ?? 0,
})

/** Defines the tests for these sinks. */
export function testFaults(sinks: readonly FaultySink[]): void {
  vi.setConfig({ testTimeout: 60_000 })
  describe.concurrent.each(sinks.map((sink) => ({ ...sink, name: `${sink.type} ${sink.way ?? ''}`.trim() })))(
    '$name',
    (sink) => testSink(sink),
  )
}

function testSink({ type, options, messages, refusals: refused = refusals, events: make = logs, limit }: FaultySink) {
  const events = () => make(['m0', 'm1', 'm2'])
  const passing: { fault: string; answer: Answer; requests: number; type?: string; code?: string; delayMs?: number }[] =
    [
      { fault: 'a reset in the middle of the body', answer: 'reset', requests: 1, type: 'connection_failed' },
      { fault: 'no answer in time', answer: 'hang', requests: 2, type: 'timed_out' },
      { fault: 'an answer that does not end in time', answer: 'stall', requests: 2, type: 'timed_out' },
      { fault: 'an answer that breaks off', answer: 'break', requests: 2, type: 'connection_failed' },
      { fault: 'an answer that is not HTTP', answer: 'garbage', requests: 2, type: 'connection_failed' },
      { fault: '408', answer: 408, requests: 2, code: 'http_response_408' },
      { fault: '413, for which it is halved', answer: 413, requests: 3 },
      { fault: '429', answer: 429, requests: 2, code: 'http_response_429' },
      {
        fault: '429 with Retry-After',
        answer: { status: 429, headers: { 'retry-after': '1' } },
        requests: 2,
        code: 'http_response_429',
        delayMs: 1000,
      },
      { fault: '500', answer: 500, requests: 2, code: 'http_response_500' },
      { fault: '503', answer: 503, requests: 2, code: 'http_response_503' },
      {
        fault: '503 with a date',
        answer: { status: 503, headers: { 'retry-after': new Date().toUTCString() } },
        requests: 2,
        code: 'http_response_503',
      },
      ...refusals
        .filter((status) => !refused.includes(status) || unauthorized.includes(status))
        .map((answer) => ({ fault: String(answer), answer, requests: 2, code: `http_response_${answer}` })),
    ]
  const isFinal = (answer: Answer) =>
    typeof answer === 'number' && refused.includes(answer) && !unauthorized.includes(answer)
  test.each(passing.filter(({ answer }) => !isFinal(answer)))(
    'delivers all events after $fault',
    async ({ answer, requests, type: errorType = 'request_failed', code, delayMs = 0 }) => {
      await using destination = await fakeDestination(answer, well)
      // Use a short timeout only for missing responses, because a busy machine may respond slowly.
      const isLate = answer === 'hang' || answer === 'stall'
      const request = isLate ? { timeout_secs: 1 } : {}
      await using sink = await startSink(type, { ...options(destination.url), request })

      expect(await sink.deliver(events())).toBe('delivered')

      if (isLate) expect(destination.requests.length).toBeGreaterThanOrEqual(requests)
      else expect(destination.requests).toHaveLength(requests)
      const accepted = destination.requests.slice(answer === 'reset' ? 0 : 1)
      expect((isLate ? accepted.slice(-1) : accepted).flatMap(messages)).toEqual(['m0', 'm1', 'm2'])
      expect(counts(sink)).toEqual({ sent: 3, discarded: 0 })
      if (answer === 413) return // not a failure: the halves are accepted
      const [error] = sink.events.errors
      expect(error).toMatchObject({ type: errorType, stage: 'sending', level: 'warn' })
      expect(error?.code).toBe(code)
      expect(error?.fields?.['delay_ms']).toBeGreaterThanOrEqual(delayMs)
    },
  )

  test('delivers all events to a destination that was not there at first', async () => {
    const port = await freePort()
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
    const request = unauthorized.includes(answer) ? { request: { auth_grace_secs: 0 } } : {}
    await using sink = await startSink(type, { ...options(destination.url), ...request })

    expect(await sink.deliver(events())).toBe('rejected')

    expect(destination.requests).toHaveLength(1)
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
    expect(sink.events.discards).toEqual([{ events: 3, intentional: false, reason: givenUp }])
    expect(sink.events.errors).toEqual([
      expect.objectContaining({ type: 'request_failed', stage: 'sending', code: `http_response_${answer}` }),
    ])
  })

  test('discards alone the event that is too large for the destination', async () => {
    await using destination = await fakeDestination((request) => (messages(request).includes('m1') ? 413 : well))
    await using sink = await startSink(type, options(destination.url))

    expect(await sink.deliver(events())).toBe('rejected')

    expect(counts(sink)).toEqual({ sent: 2, discarded: 1 })
    expect(sink.events.discards).toEqual([{ events: 1, intentional: false, reason: tooLarge }])
    // The whole batch, then its halves, then the halves of the half that is still too large.
    expect(destination.requests.map(messages)).toEqual([['m0', 'm1', 'm2'], ['m0'], ['m1', 'm2'], ['m1'], ['m2']])
  })

  test.each(limit === undefined ? [] : [limit])(
    'discards alone the event over the limit of the vendor',
    async (own) => {
      const { bytes, options: extra } = own
      await using destination = await fakeDestination(well)
      await using sink = await startSink(type, { ...options(destination.url), ...extra })
      const half = 'x'.repeat(Math.floor(bytes * 0.45))

      expect(await sink.deliver(make([`${half} m0`, `${half}${half}${half} m1`, `${half} m2`, 'm3']))).toBe('rejected')

      expect(destination.requests.flatMap(messages)).toEqual(['m0', 'm2', 'm3'])
      for (const request of destination.requests) expect(request.raw.length).toBeLessThanOrEqual(bytes)
      expect(counts(sink)).toEqual({ sent: 3, discarded: 1 })
      expect(sink.events.errors).toHaveLength(1)
    },
  )

  test.each([
    { attempts: 0, status: 'errored', requests: 1 },
    { attempts: 1, status: 'rejected', requests: 2 },
  ])('gives up after $attempts retries', async ({ attempts, status, requests }) => {
    await using destination = await fakeDestination(500)
    await using sink = await startSink(type, { ...options(destination.url), request: { retry_attempts: attempts } })

    expect(await sink.deliver(events())).toBe(status)

    expect(destination.requests).toHaveLength(requests)
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
    expect(sink.events.discards).toEqual([{ events: 3, intentional: false, reason: givenUp }])
  })

  test(`under random faults every event is delivered or discarded, and counted once (seed ${seed})`, async () => {
    const random = new Random(seed)
    const faults: Answer[] = [500, 429, 'break', 'garbage', 'reset', 400, 413]
    const accepted = new Set<string>()
    await using destination = await fakeDestination((request) => {
      const fault = faults[random.below(faults.length * 2)]
      if (fault !== undefined) return fault
      for (const message of messages(request)) accepted.add(message)
      return well
    })
    const own = { batch: { max_events: 4 }, request: { concurrency: 8 } }
    await using sink = await startSink(type, { ...options(destination.url), ...own })
    const names = Array.from({ length: 40 }, (_, index) => `m${index}`)

    await sink.deliver(make(names))

    expect(accepted.size).toBeGreaterThan(0)
    expect(accepted.size).toBeLessThan(names.length)
    expect(counts(sink)).toEqual({ sent: accepted.size, discarded: names.length - accepted.size })
  })

  test('discards its remaining events when the time for a graceful stop is over', async () => {
    await using destination = await fakeDestination('hang')
    const sink = await startSink(type, options(destination.url))
    const status = sink.deliver(events())
    await destination.received(1)

    await sink[Symbol.asyncDispose]()

    expect(await status).toBe('errored')
    expect(counts(sink)).toEqual({ sent: 0, discarded: 3 })
    expect(sink.events.discards).toEqual([{ events: 3, intentional: false, reason: stopped }])
  })
}
