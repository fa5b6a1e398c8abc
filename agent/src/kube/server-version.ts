// The version of the API server: logged once at the start, with a warning if the agent does not support one so old.
// A distribution may append to a number, as in `19+`.

import { pause } from '../clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { ApiServerClient } from './client.ts'

/** The oldest version of Kubernetes 1 that the agent supports: it serves `events.k8s.io/v1`. */
export const minServerMinor = 19

export interface ServerVersion {
  readonly minor: number
  /** As the server writes it, such as `v1.36.3`. */
  readonly text: string
}

/** Reads an answer to `/version`; undefined if it names no version of Kubernetes 1. */
export function parseServerVersion(answer: unknown): ServerVersion | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { major, minor, gitVersion } = answer as Readonly<Record<string, unknown>>
  const digits = typeof minor === 'string' ? /^\d+/.exec(minor)?.[0] : undefined
  if (major !== '1' || digits === undefined) return undefined
  return { minor: Number(digits), text: typeof gitVersion === 'string' ? gitVersion : `v1.${minor}` }
}

const retryMs = 10_000

/** Resolves when the server has answered, or the signal aborts. A server that does not say its version is not asked again. */
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
      else if (version.minor >= minServerMinor) logger.info(facts, 'The Kubernetes API server answers.')
      else
        logger.warn(
          facts,
          'The Kubernetes API server is older than the agent supports: metadata and events may be missing. Upgrade the cluster.',
        )
      return
    } catch {
      // The watches report that the API cannot be reached.
      await pause(retryMs, signal)
    }
  }
}
