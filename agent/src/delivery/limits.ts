// Creates the limits of a sink's requests from its options: concurrency (with its metrics), rate, and retries.

import type { SinkContext } from '../component.ts'
import type { RequestOptions } from '../schema/groups.ts'
import { AdaptiveConcurrency } from './adaptive-concurrency.ts'
import { type ConcurrencyLimit, fixedConcurrency } from './concurrency.ts'
import { RateLimit } from './rate-limit.ts'
import type { RetryOptions } from './retry.ts'

/** Creates the concurrency limit for the options. */
export function limitsOf(
  request: Pick<RequestOptions, 'adaptive_concurrency' | 'concurrency'>,
  context: SinkContext,
): () => ConcurrencyLimit {
  const { concurrency } = request
  if (concurrency === 'none') return () => fixedConcurrency(1)
  if (typeof concurrency === 'number') return () => fixedConcurrency(concurrency)
  const { events } = context
  return () => {
    events.gauge('adaptive_concurrency_limit', request.adaptive_concurrency.initial_concurrency)
    return new AdaptiveConcurrency(request.adaptive_concurrency, {
      inFlight: (requests) => events.observe('adaptive_concurrency_in_flight', requests),
      observedRtt: (ms) => events.observe('adaptive_concurrency_observed_rtt', ms / 1000),
      adjusted(state) {
        events.gauge('adaptive_concurrency_limit', state.limit)
        events.observe('adaptive_concurrency_past_rtt_mean', state.pastMeanMs / 1000)
        events.observe('adaptive_concurrency_reached_limit', state.reachedLimit ? 1 : 0)
        events.observe('adaptive_concurrency_back_pressure', state.backPressure ? 1 : 0)
        if (state.averageMs !== undefined) {
          events.observe('adaptive_concurrency_averaged_rtt', state.averageMs / 1000)
        }
      },
    })
  }
}

/** Creates the rate limit for the options, and converts the retry options to milliseconds. */
export function requestPace(
  request: Pick<
    RequestOptions,
    | 'rate_limit_num'
    | 'rate_limit_duration_secs'
    | 'retry_attempts'
    | 'retry_initial_backoff_secs'
    | 'retry_max_duration_secs'
    | 'retry_jitter_mode'
  >,
): { readonly rateLimit: RateLimit; readonly retry: RetryOptions } {
  return {
    rateLimit: new RateLimit(request.rate_limit_num, request.rate_limit_duration_secs * 1000),
    retry: {
      attempts: request.retry_attempts,
      initialMs: request.retry_initial_backoff_secs * 1000,
      maxMs: request.retry_max_duration_secs * 1000,
      jitter: request.retry_jitter_mode,
    },
  }
}
