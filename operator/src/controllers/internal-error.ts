// An unexpected error as a condition. It is the operator's own fault, and a user who waits for a result must see it.

import { errorText } from '@penstock/agent/errors'
import type { ConditionType, Finding } from '../api/conditions.ts'
import { KubeError } from '../kube/client.ts'

/** Responses of the API server, timeouts and the end of the process are excluded: those are retried silently. */
export function isInternal(error: unknown): boolean {
  if (error instanceof KubeError) return false
  return !(error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
}

/** Whether the API server failed, or did not answer: this says nothing about the object. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof KubeError && (error.status === 0 || error.status === 429 || error.status >= 500)
}

/** A failure that has lasted for a while, as a condition. @param text the text of the error, if it contains no secret value */
export function failedFinding(type: ConditionType, error: unknown, text = errorText(error)): Finding {
  if (isInternal(error)) return internalError(type, error, text)
  const message = `The operator has failed several times, and retries; the running version continues. ${causeOf(error)}`
  return { type, status: 'Unknown', reason: 'Pending', message }
}

/** The path and the status name the object; the words of the API server may change each time. */
function causeOf(error: unknown): string {
  if (!(error instanceof KubeError)) return 'A step takes too long.'
  if (error.status === 0) return error.unreachable ?? 'The API server does not answer.'
  return `The API server answers with status ${error.status}: ${error.message.slice(0, maxCause)}`
}

const maxCause = 256

/** @param text the text of the error, if it contains no secret value */
export function internalError(type: ConditionType, error: unknown, text = errorText(error)): Finding {
  const name = error instanceof Error ? error.name : 'Error'
  const cause = text === '' ? name : `${name}: ${text}`
  const message = `The operator failed on this object (${cause}) and retries; the running version continues. This is a bug in the operator: see its log for details.`
  return { type, status: 'Unknown', reason: 'InternalError', message }
}
