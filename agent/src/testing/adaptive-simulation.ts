// Simulates adaptive concurrency against invented destinations. A fake clock makes the figures the same each time. Tests compare
// them with the limits that the reference promises, and the reference shows them as plots.

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

/** How a destination answers a request while this many are open, itself included. */
export interface Answering {
  readonly ms: number
  readonly attempt: Attempt
}

export interface Destination {
  readonly name: string
  /** How it behaves, for the reference. */
  readonly description: string
  /** How long it is looked at. */
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
    name: 'A destination that bears ten requests at once',
    description:
      'Round trips of 100 ms; beyond ten requests in flight they grow with the square of the crowd. One request more makes them only a little longer, and the moving average follows, so few of them exceed it by `rtt_deviation_scale` deviations: the limit climbs beyond ten and deliveries fall, until steps up and down balance. If you know where a destination bends so, set `max_concurrency_limit` to it.',
    seconds: 120,
    answer: (inFlight) => ({ ms: crowded(100, 10, inFlight), attempt: delivered }),
  },
  rising: {
    name: 'A destination that slows down and recovers',
    description:
      'Round trips of 100 ms while there are at most forty requests. From second 40 to 80 it bears fewer and fewer, down to eight; from second 120 on forty again.',
    seconds: 180,
    answer(inFlight, second) {
      const part = second < 40 || second >= 120 ? 0 : Math.min(1, (second - 40) / 40)
      return { ms: crowded(100, 40 - 32 * part, inFlight), attempt: delivered }
    },
  },
  limited: {
    name: 'A destination that answers 429',
    description: 'Round trips of 100 ms however many there are; beyond fifteen requests in flight it answers 429.',
    seconds: 120,
    answer: (inFlight) => ({ ms: 100, attempt: inFlight > 15 ? tooMany : delivered }),
  },
} as const satisfies Readonly<Record<string, Destination>>

/** Sends as much as the limit allows, and returns the figures of every second. */
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
