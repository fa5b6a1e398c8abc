// Simulates adaptive concurrency against fictitious destinations. A fake clock makes the results reproducible. Tests compare them with the
// limits that the reference promises, and the reference shows them as plots.

import { pause } from '../clock.ts'
import { AdaptiveConcurrency, type AdaptiveOptions } from '../delivery/adaptive-concurrency.ts'
import { type Attempt, Delivery } from '../delivery/delivery.ts'
import { RateLimit } from '../delivery/rate-limit.ts'
import { loggingEvents } from '../telemetry/component-events.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { FakeClock } from './clock.ts'
import { fakeRequest } from './requests.ts'

export const defaultAdaptive: AdaptiveOptions = {
  initial_concurrency: 1,
  max_concurrency_limit: 200,
  decrease_ratio: 0.9,
  ewma_alpha: 0.4,
  rtt_deviation_scale: 2.5,
}

/** The response of a destination to a request, by the number of open requests including this one. */
export interface Answering {
  readonly ms: number
  readonly attempt: Attempt
}

export interface Destination {
  readonly name: string
  /** A description of its behaviour for the reference. */
  readonly description: string
  /** Duration of the simulation. */
  readonly seconds: number
  answer(inFlight: number, second: number): Answering
}

export interface Second {
  /** The limit at the end of the second. */
  readonly limit: number
  readonly delivered: number
  readonly refused: number
}

const delivered: Attempt = { outcome: 'delivered' }
const tooMany: Attempt = { outcome: 'retry', failure: { type: 'request_failed', code: 'http_response_429' } }

const crowded = (base: number, capacity: number, inFlight: number): number => {
  const crowd = Math.max(1, inFlight / capacity)
  return base * crowd * crowd
}

export const destinations = {
  knee: {
    name: 'A destination with capacity for ten concurrent requests',
    description:
      'Round trips take 100 ms; above ten requests in flight, they grow with the square of their number. One more request makes them only slightly longer, and the moving average follows, so few round trips exceed it by `rtt_deviation_scale` deviations: the limit rises above ten and deliveries fall, until increases and decreases balance. If you know the capacity of such a destination, set `max_concurrency_limit` to it.',
    seconds: 120,
    answer: (inFlight) => ({ ms: crowded(100, 10, inFlight), attempt: delivered }),
  },
  rising: {
    name: 'A destination that slows down and recovers',
    description:
      'Round trips take 100 ms with up to forty requests in flight. From second 40 to 80, the capacity falls to eight requests; from second 120, it is forty again.',
    seconds: 180,
    answer(inFlight, second) {
      const part = second < 40 || second >= 120 ? 0 : Math.min(1, (second - 40) / 40)
      return { ms: crowded(100, 40 - 32 * part, inFlight), attempt: delivered }
    },
  },
  limited: {
    name: 'A destination that answers 429',
    description: 'Round trips always take 100 ms; above fifteen requests in flight, the destination responds with 429.',
    seconds: 120,
    answer: (inFlight) => ({ ms: 100, attempt: inFlight > 15 ? tooMany : delivered }),
  },
} as const satisfies Readonly<Record<string, Destination>>

/** Sends as many requests as the limit allows, and returns the figures of each second. */
export async function simulate(destination: Destination): Promise<Second[]> {
  const clock = new FakeClock()
  const abandoning = new AbortController()
  const concurrency = new AdaptiveConcurrency(defaultAdaptive)
  let inFlight = 0
  let done = 0
  let refused = 0
  const call = async (): Promise<Attempt> => {
    inFlight++
    const { ms, attempt } = destination.answer(inFlight, Math.floor(clock.now() / 1000))
    await pause(ms, abandoning.signal, clock)
    inFlight--
    if (attempt === delivered) done++
    else refused++
    return attempt
  }
  const retry = { attempts: Number.MAX_SAFE_INTEGER, initialMs: 1000, maxMs: 1000, jitter: 'none' } as const
  const rateLimit = new RateLimit(Number.MAX_SAFE_INTEGER, 1000)
  const events = loggingEvents(silentLogger)
  const delivery = new Delivery({ concurrency, rateLimit, retry }, call, events, abandoning.signal, clock)
  let submitted = 0
  const seconds: Second[] = []
  for (let second = 0; second < destination.seconds; second++) {
    for (; submitted < done + 1000; submitted++) delivery.submit(fakeRequest())
    const before = { done, refused }
    await clock.advance(1000)
    seconds.push({ limit: concurrency.limit, delivered: done - before.done, refused: refused - before.refused })
  }
  abandoning.abort()
  return seconds
}
