// Answers of AWS that are worth another attempt although their status says otherwise.

import type { Attempt } from '../delivery/delivery.ts'
import { retryAfterMs } from '../http/classify.ts'
import type { HttpResponse } from '../http/client.ts'

const passing = /RequestTimeout|RequestExpired|ThrottlingException/

/** The attempt as it is, or a retry where the service asks for one. */
export function retryAws(response: HttpResponse, attempt: Attempt): Attempt {
  if (attempt.outcome !== 'rejected') return attempt
  const asked = response.headers.has('x-amz-retry-after')
  if (!asked && !passing.test(response.body.toString('utf8'))) return attempt
  return { outcome: 'retry', failure: attempt.failure, retryAfterMs: retryAfterMs(response) }
}
