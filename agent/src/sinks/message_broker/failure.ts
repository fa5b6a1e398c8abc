// The reason for a failure at the broker, and whether a retry can help.

import type { Failure } from '../../delivery/delivery.ts'
import { PenstockError } from '../../errors.ts'
import { transportFields } from '../../net/transport-errors.ts'
import type { ErrorType } from '../../telemetry/component-events.ts'

/**
 * The errors of a broker by number. `final`: a retry of the same request fails in the same way. Names in use, blocked
 * quotas and refused credentials may become available later.
 */
const brokerErrors: Readonly<
  Record<number, { readonly name: string; readonly final?: true; readonly type?: ErrorType }>
> = {
  0: { name: 'unknown' },
  1: { name: 'metadata' },
  2: { name: 'persistence' },
  3: { name: 'authentication', type: 'authentication_failed' },
  4: { name: 'authorization', final: true, type: 'authentication_failed' },
  6: { name: 'service_not_ready' },
  7: { name: 'quota_exceeded' },
  8: { name: 'quota_exceeded' },
  9: { name: 'checksum' },
  10: { name: 'unsupported_version', final: true },
  11: { name: 'topic_not_found', final: true },
  14: { name: 'too_many_requests' },
  15: { name: 'topic_terminated', final: true },
  16: { name: 'producer_busy' },
  17: { name: 'invalid_topic_name', final: true },
  18: { name: 'incompatible_schema', final: true },
  22: { name: 'not_allowed', final: true },
  25: { name: 'producer_fenced', final: true },
}

export const notAllowed = 22

export class BrokerFailure extends PenstockError {
  readonly failure: Failure
  /** Whether the affected events can never be sent. */
  readonly final: boolean
  /** Whether no broker was reachable, so that an immediate new look-up makes sense. */
  readonly unreached: boolean

  constructor(message: string, failure: Failure, kind: 'final' | 'retry' | 'unreached', options?: ErrorOptions) {
    super('PEN_REQUEST_FAILED', message, options)
    this.failure = failure
    this.final = kind === 'final'
    this.unreached = kind === 'unreached'
  }
}

/** The failure for a broker's error number and text. */
export function brokerFailure(number: number, text: string): BrokerFailure {
  const known = brokerErrors[number]
  const name = known?.name ?? `error_${number}`
  return new BrokerFailure(
    `The broker answered with error ${number} (${name})${text === '' ? '' : `: ${text}`}.`,
    { type: known?.type ?? 'request_failed', code: `broker_${name}`, fields: { broker_error: number, reason: text } },
    known?.final === true ? 'final' : 'retry',
  )
}

/** The failure for any error thrown on the way to a broker. */
export function failureOf(error: unknown): BrokerFailure {
  if (error instanceof BrokerFailure) return error
  const fields = transportFields(error)
  if (error instanceof PenstockError && error.code === 'PEN_AUTH') {
    return new BrokerFailure(error.message, { type: 'authentication_failed', fields }, 'retry', { cause: error })
  }
  return new BrokerFailure(
    `The broker cannot be reached: ${String(fields['error'])}.`,
    { type: 'connection_failed', fields },
    'unreached',
    { cause: error },
  )
}

export function timedOut(what: string, timeoutMs: number): BrokerFailure {
  return new BrokerFailure(
    `The broker did not respond to ${what} within ${timeoutMs / 1000} s.`,
    { type: 'timed_out', fields: { waited_for: what, timeout_ms: timeoutMs } },
    'retry',
  )
}
