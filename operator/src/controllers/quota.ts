// Quotas: how many Pipelines, components and bytes of disk buffers a namespace may have, and how many bytes an Agent's nodes. Where
// one is exceeded the youngest gives way, then the last by name (T14): never all.

import type { Agent } from '../api/agent.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { TenantPolicySpec } from '../api/tenant-policy.ts'
import { bytesText, quantityOf } from '../compile/quantity.ts'

/** Bytes of disk buffers of an Agent's nodes, when it names none. */
const unlimited = Number.POSITIVE_INFINITY

/** The oldest first, then by namespace and name. */
export function byAge(left: Pipeline, right: Pipeline): number {
  const [a, b] = [left.metadata, right.metadata]
  const first = [a.creationTimestamp ?? '', a.namespace ?? '', a.name]
  const second = [b.creationTimestamp ?? '', b.namespace ?? '', b.name]
  for (const [index, value] of first.entries()) {
    if (value !== second[index]) return value < (second[index] as string) ? -1 : 1
  }
  return 0
}

/** Why a Pipeline is over the quota of its namespace; undefined if it is not. */
export function namespaceQuotaProblem(
  pipeline: Pipeline,
  peers: readonly Pipeline[],
  diskBytesOf: (pipeline: Pipeline) => number,
  quota: NonNullable<TenantPolicySpec['quota']>,
): string | undefined {
  const older = peers.filter((peer) => byAge(peer, pipeline) < 0)
  if (quota.pipelines !== undefined && older.length >= quota.pipelines) {
    return `The namespace may have ${quota.pipelines} Pipelines, and this is number ${older.length + 1} by age`
  }
  if (quota.components !== undefined) {
    const sum = [...older, pipeline].reduce((total, each) => total + componentsOf(each), 0)
    if (sum > quota.components) {
      return `The namespace may have ${quota.components} components, and with this Pipeline it has ${sum}`
    }
  }
  const most = quantityOf(quota.diskBuffer)
  const own = diskBytesOf(pipeline)
  if (most !== undefined && own > 0) {
    const sum = older.reduce((total, each) => total + diskBytesOf(each), own)
    if (sum > most) {
      return `The namespace may have ${bytesText(most)} of disk buffers, and with this Pipeline it has ${bytesText(sum)}`
    }
  }
  return undefined
}

/** Why the disk buffers of a Pipeline do not fit on the nodes of an Agent (T10). */
export function diskBudgetProblem(
  pipeline: Pipeline,
  peers: readonly Pipeline[],
  diskBytesOf: (pipeline: Pipeline) => number,
  agent: Agent,
): string | undefined {
  const budget = quantityOf(agent.spec.node?.dataDir?.diskBudget) ?? unlimited
  const own = diskBytesOf(pipeline)
  if (own === 0 || budget === unlimited) return undefined
  const older = peers.filter((peer) => byAge(peer, pipeline) < 0)
  const sum = older.reduce((total, each) => total + diskBytesOf(each), own)
  if (sum <= budget) return undefined
  const name = `${agent.metadata.namespace}/${agent.metadata.name}`
  return `Agent ${name} has ${bytesText(budget)} for disk buffers, and with this Pipeline ${bytesText(sum)} are asked for (T10)`
}

function componentsOf({ spec }: Pipeline): number {
  return spec.sources.length + (spec.transforms?.length ?? 0) + spec.sinks.length
}
