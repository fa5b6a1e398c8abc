// Logs the version of the API server once at start, and warns if it is older than the agent supports.
// Distributions may append characters to a number, as in `19+`.

import { pause } from '../clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { ApiServerClient } from './client.ts'

/** The oldest supported minor version of Kubernetes 1, the first with `events.k8s.io/v1`. */
export const minServerMinor = 19

export interface ServerVersion {
  readonly minor: number
  /** The version as the server reports it, such as `v1.36.3`. */
  readonly text: string
}

/** Parses a response of `/version`; undefined if it contains no version of Kubernetes 1. */
export function parseServerVersion(answer: unknown): ServerVersion | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { major, minor, gitVersion } = answer as Readonly<Record<string, unknown>>
  const digits = typeof minor === 'string' ? /^\d+/.exec(minor)?.[0] : undefined
  if (major !== '1' || digits === undefined) return undefined
  return { minor: Number(digits), text: typeof gitVersion === 'string' ? gitVersion : `v1.${minor}` }
}

const retryMs = 10_000

/** Resolves when the server has responded, or the signal aborts. If the server does not report its version, there is no further attempt. */
export async function reportServerVersion(client: ApiServerClient, logger: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const { status, body } = await client.json('/version', signal)
      if (status === 429 || status >= 500) {
        await pause(retryMs, signal)
        continue
      }
      const version = parseServerVersion(body)
      const facts = { server_version: version?.text, min_version: `v1.${minServerMinor}` }
      if (version === undefined) logger.debug(facts, 'The Kubernetes API server does not report its version.')
      else if (version.minor >= minServerMinor) logger.info(facts, 'Connected to the Kubernetes API server.')
      else
        logger.warn(
          facts,
          'The Kubernetes API server is older than the agent supports: metadata and events may be missing. Upgrade the cluster.',
        )
      return
    } catch {
      // The watches report connection errors.
      await pause(retryMs, signal)
    }
  }
}
