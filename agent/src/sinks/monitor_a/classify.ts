// The meaning of an answer of monitoring service A for the events of the request.

import type { Attempt } from '../../delivery/delivery.ts'
import { responseFailure, retryAfterMs } from '../../http/classify.ts'
import type { HttpResponse } from '../../http/client.ts'
/** A refused key may become valid after a rotation, so only malformed requests are given up. */
export function classify(response: HttpResponse): Attempt {
  const { status } = response
  if (status >= 200 && status < 300) return { outcome: 'delivered' }
  const failure = responseFailure(status)
  if (status === 413) return { outcome: 'too_large', failure }
  if (status === 400) return { outcome: 'rejected', failure }
  return { outcome: 'retry', failure, retryAfterMs: retryAfterMs(response) }
}
