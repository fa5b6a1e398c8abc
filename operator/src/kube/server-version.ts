// The version of the API server, requested before anything else.

import { errorText } from '@penstock/agent/errors'
import { parseServerVersion, type ServerVersion } from '@penstock/agent/kube'
import { pause } from '@penstock/agent/program'
import type { Logger } from '@penstock/agent/telemetry'
import { type KubeClient, KubeError } from './client.ts'

const againMs = 10_000

/** Waits until the server responds. Undefined if it does not report its version, or the signal aborts. */
export async function serverVersion(
  kube: KubeClient,
  logger: Logger,
  signal: AbortSignal,
): Promise<ServerVersion | undefined> {
  while (!signal.aborted) {
    try {
      return parseServerVersion(await kube.request('GET', '/version', undefined, { signal }))
    } catch (error) {
      if (error instanceof KubeError && error.status >= 400 && error.status < 500 && error.status !== 429)
        return undefined
      if (signal.aborted) return undefined
      logger.warn({ error: errorText(error) }, 'The Kubernetes API server does not report its version; trying again.')
      await pause(againMs, signal)
    }
  }
  return undefined
}
