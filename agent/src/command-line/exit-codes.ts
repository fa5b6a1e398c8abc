// The exit codes of the agent, and the exit code for each error.

import { type ErrorCode, PenstockError } from '../errors.ts'

export const exitCodes = {
  ok: 0,
  usage: 64,
  unavailable: 69,
  internal: 70,
  cannotCreate: 73,
  io: 74,
  config: 78,
} as const

const byError: Readonly<Partial<Record<ErrorCode, number>>> = {
  PEN_USAGE: exitCodes.usage,
  PEN_UNAVAILABLE: exitCodes.unavailable,
  PEN_KUBERNETES: exitCodes.unavailable,
  PEN_REQUEST_FAILED: exitCodes.unavailable,
  PEN_INTERNAL: exitCodes.internal,
  PEN_IO: exitCodes.io,
  PEN_CANNOT_CREATE: exitCodes.cannotCreate,
  PEN_API_BIND: exitCodes.io,
}

/** The exit code for an error; 78 for every error in the configuration. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof PenstockError)) return exitCodes.internal
  return byError[error.code] ?? exitCodes.config
}
