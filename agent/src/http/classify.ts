// What an answer means for the events of its request: delivered, worth another attempt, too large, or refused for good.

import type { Attempt, Failure } from '../delivery/delivery.ts'
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
