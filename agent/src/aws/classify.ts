// Answers of AWS that are worth another attempt although their status says otherwise.

import type { Attempt } from '../delivery/delivery.ts'
import { retryAfterMs } from '../http/classify.ts'
import type { HttpResponse } from '../http/client.ts'

const passing = /RequestTimeout|RequestExpired|ThrottlingException/
/** Answers of services about expired temporary credentials; some give only a text. */
const ended =
  /ExpiredToken|InvalidClientTokenId|UnrecognizedClientException|security token included in the request is (?:expired|invalid)/

/**
 * The attempt as it is, or a retry where the service asks for one, or where other credentials may be available.
 * @param renew has the credentials looked up again for the next attempt; false if there can be no others
 */
export function retryAws(response: HttpResponse, attempt: Attempt, renew: () => boolean): Attempt {
  if (attempt.outcome !== 'rejected') return attempt
  const text = `${response.headers.get('x-amzn-errortype') ?? ''} ${response.body.toString('utf8')}`
  const asked = response.headers.has('x-amz-retry-after') || passing.test(text)
  if (!asked && !(ended.test(text) && renew())) return attempt
  return { outcome: 'retry', failure: attempt.failure, retryAfterMs: retryAfterMs(response) }
}
