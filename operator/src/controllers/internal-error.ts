// An unexpected error as a condition. It is the operator's own fault, and a user who waits for a result must see it.

import { errorText } from '@penstock/agent/errors'
import type { ConditionType, Finding } from '../api/conditions.ts'
import { KubeError } from '../kube/client.ts'

/** Responses of the API server, timeouts and the end of the process are excluded: those are retried silently. */
export function isInternal(error: unknown): boolean {
  if (error instanceof KubeError) return false
  return !(error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
}

/** @param text the text of the error, if it contains no secret value */
export function internalError(type: ConditionType, error: unknown, text = errorText(error)): Finding {
  const name = error instanceof Error ? error.name : 'Error'
  const cause = text === '' ? name : `${name}: ${text}`
  const message = `The operator failed on this object (${cause}) and retries; the running version continues. This is a bug in the operator: see its log for details.`
  return { type, status: 'Unknown', reason: 'InternalError', message }
}
