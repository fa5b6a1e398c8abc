// Recognizes AWS responses after which a retry can succeed, although their status suggests otherwise.

import type { Attempt } from '../delivery/delivery.ts'
import { retryAfterMs } from '../http/classify.ts'
import type { HttpResponse } from '../http/client.ts'

const passing = /RequestTimeout|RequestExpired|ThrottlingException/
/** Matches responses about expired temporary credentials. Some services return only a text. */
const ended =
  /ExpiredToken|InvalidClientTokenId|UnrecognizedClientException|security token included in the request is (?:expired|invalid)/

/**
 * Returns the attempt unchanged, or a retry if the service requests one or if new credentials may be available.
 * @param renew requests new credentials for the next attempt; returns false if none are possible
 */
export function retryAws(response: HttpResponse, attempt: Attempt, renew: () => boolean): Attempt {
  if (attempt.outcome !== 'rejected') return attempt
  const text = `${response.headers.get('x-amzn-errortype') ?? ''} ${response.body.toString('utf8')}`
  const asked = response.headers.has('x-amz-retry-after') || passing.test(text)
  if (!asked && !(ended.test(text) && renew())) return attempt
  return { outcome: 'retry', failure: attempt.failure, retryAfterMs: retryAfterMs(response) }
}
