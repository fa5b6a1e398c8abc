// Classifies a response: the events of the request are delivered, can be retried, are too large, or are permanently rejected.

import type { Attempt, Failure } from '../delivery/delivery.ts'
import type { Request } from '../delivery/request.ts'
import type { HttpResponse } from './client.ts'

export function classifyResponse(response: HttpResponse): Attempt {
  const { status } = response
  if (status >= 200 && status < 300) return { outcome: 'delivered' }
  const failure = responseFailure(status)
  if (status === 413) return { outcome: 'too_large', failure }
  if (status === 408 || status === 429 || (status >= 500 && status !== 501)) {
    return { outcome: 'retry', failure, retryAfterMs: retryAfterMs(response) }
  }
  return { outcome: 'rejected', failure }
}

/** Maximum number of times to halve one request to find the rejected events. After that, the remaining events are rejected together. */
const maxHalvings = 32

/**
 * Classifies the response of a destination that rejects some events of a request and accepts the others, without reporting which.
 * Sending halves of the request finds them. Use it only if the destination does not store an event twice when it receives it twice.
 * @param ofSome matches a response that concerns only some of the events
 */
export function classifyInHalves(response: HttpResponse, { count, origin }: Request, ofSome: RegExp): Attempt {
  const attempt = classifyResponse(response)
  if (attempt.outcome !== 'rejected' || count === 1 || origin.halvings >= maxHalvings) return attempt
  return ofSome.test(response.body.toString('utf8')) ? { outcome: 'too_large', failure: attempt.failure } : attempt
}

export function responseFailure(status: number, fields: Readonly<Record<string, unknown>> = {}): Failure {
  return { type: 'request_failed', code: `http_response_${status}`, fields: { status, ...fields } }
}

/** `Retry-After` in milliseconds from now: seconds or an HTTP date (RFC 9110, section 10.2.3). */
export function retryAfterMs(response: HttpResponse, now = Date.now()): number | undefined {
  const text = response.headers.get('retry-after')?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
