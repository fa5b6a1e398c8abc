// Decides whether the operator can run in a cluster of a version: it refuses to start if essential features are missing, and
// warns about others.

import { PenstockError } from '@penstock/agent/errors'
import { minServerMinor, type ServerVersion } from '@penstock/agent/kube'
import type { Logger } from '@penstock/agent/telemetry'
import { clusterNeeds, minClusterMinor, minEssentialMinor } from '../workloads/cluster-needs.ts'

/** Throws PEN_KUBERNETES for a version on which the operator must not run. */
export function checkClusterVersion(version: ServerVersion | undefined, logger: Logger): void {
  if (version === undefined) {
    logger.debug('The Kubernetes API server does not report its version.')
    return
  }
  const facts = { server_version: version.text, min_version: `v1.${minClusterMinor}` }
  const missing = clusterNeeds.filter(({ minor }) => version.minor < minor)
  if (missing.length === 0) {
    logger.info(facts, 'Connected to the Kubernetes API server.')
    return
  }
  const consequences = missing.map(({ feature, otherwise }) => `without ${feature}, ${otherwise}`)
  if (version.minor >= minEssentialMinor) {
    const message = 'The cluster is older than the operator supports. Upgrade it.'
    logger.warn({ ...facts, consequences }, message)
    return
  }
  throw new PenstockError(
    'PEN_KUBERNETES',
    `The cluster runs Kubernetes ${version.text}; the operator needs 1.${minClusterMinor} or newer, and does not run below 1.${minEssentialMinor}: ${consequences.join('; ')}. Upgrade the cluster, or run the agent without the operator, which works from 1.${minServerMinor} on: examples/agent-alone/agent.yaml.`,
  )
}
