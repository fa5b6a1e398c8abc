// An error that nobody expected, as a condition. It is the operator's own fault, and a user who waits for a verdict must see it.

import { errorText } from '@penstock/agent/errors'
import type { ConditionType, Finding } from '../api/conditions.ts'
import { KubeError } from '../kube/client.ts'

/** Not what the API server answers, and not the end of the time or of the process: those are tried again in silence. */
export function isInternal(error: unknown): boolean {
  if (error instanceof KubeError) return false
  return !(error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
}

/** @param text the text of the error, if it contains no secret value */
export function internalError(type: ConditionType, error: unknown, text = errorText(error)): Finding {
  const name = error instanceof Error ? error.name : 'Error'
  const said = text === '' ? name : `${name}: ${text}`
  const message = `The operator failed on it (${said}) and tries again; what runs continues. This is a defect of the operator: its log has the details.`
  return { type, status: 'Unknown', reason: 'InternalError', message }
}
