// Failed connections and requests, as text and as log fields, for all protocols.

import { errorText } from '../errors.ts'
import { errorFact, fact } from '../telemetry/facts.ts'

/** The tag `error_kind`: the error code of the system or of a library. */
export function errorKind(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown'
}

/** Log fields: the error and its kind. */
export function transportFields(error: unknown): Record<string, unknown> {
  return { error: errorFact(reasonText(error), error), error_kind: fact(errorKind(error)) }
}

/** The reason why a request failed, without a full stop. If several addresses failed, the error has only a code and no message. */
export function reasonText(error: unknown): string {
  const text = errorText(error).replace(/\.$/, '')
  return text === '' ? errorKind(error) : text
}
