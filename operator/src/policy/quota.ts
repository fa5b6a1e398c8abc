// Quotas: how many Pipelines, components and bytes of disk buffers a namespace may have, and how many bytes the nodes of an Agent
// have. Both running Pipelines and those that would run count. If a quota is exceeded, the youngest Pipeline is excluded, or the last
// by name if ages are equal (T14), but never all of them.

import { counted } from '@penstock/agent/program'
import { type Agent, defaultDiskBudget } from '../api/agent.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { bytesText, limitOf } from '../api/quantity.ts'
import type { TenantPolicySpec } from '../api/tenant-policy.ts'
import type { Artifact } from '../compile/artifact.ts'

/** Oldest first, then by namespace and name. */
function byAge(left: Pipeline, right: Pipeline): number {
  const [a, b] = [left.metadata, right.metadata]
  const first = [a.creationTimestamp ?? '', a.namespace ?? '', a.name]
  const second = [b.creationTimestamp ?? '', b.namespace ?? '', b.name]
  for (const [index, value] of first.entries()) {
    if (value !== second[index]) return value < (second[index] as string) ? -1 : 1
  }
  return 0
}

/** The quota use of a Pipeline's version. */
export interface Need {
  readonly components: number
  readonly diskBytes: number
}

export interface Claim {
  readonly pipeline: Pipeline
  /** Size of the newest version; undefined if it is unknown, or rejected regardless of quotas. */
  readonly wanted: Need | undefined
  /** Size of the running version. */
  readonly running: Need | undefined
}

interface Taken extends Need {
  readonly pipelines: number
}

/** Why a Pipeline exceeds the quota of its namespace; undefined if it does not. */
export function namespaceQuotaProblem(
  claim: Claim,
  peers: readonly Claim[],
  quota: NonNullable<TenantPolicySpec['quota']>,
): string | undefined {
  const maxBytes = limitOf(quota.diskBuffer)
  return problemOf(claim, peers, (taken, { components, diskBytes }) => {
    if (quota.pipelines !== undefined && taken.pipelines >= quota.pipelines) {
      return `The namespace may have ${counted(quota.pipelines, 'Pipeline')}, and this is number ${taken.pipelines + 1} by age`
    }
    if (quota.components !== undefined && taken.components + components > quota.components) {
      return `The namespace may have ${counted(quota.components, 'component')}, and with this Pipeline it has ${taken.components + components}`
    }
    const sum = taken.diskBytes + diskBytes
    if (maxBytes === undefined || diskBytes === 0 || sum <= maxBytes) return undefined
    return `The namespace may have ${bytesText(maxBytes)} of disk buffers, and with this Pipeline it has ${bytesText(sum)}`
  })
}

/**
 * Why a Pipeline's disk buffers do not fit on the nodes of an Agent (T10). A budget set in the Agent is for all of its Pipelines. The
 * default, or the size of an aggregator's volumes, is for namespaced Pipelines only.
 */
export function diskBudgetProblem(claim: Claim, peers: readonly Claim[], agent: Agent): string | undefined {
  const own = agent.spec.node?.dataDir?.diskBudget
  const text = own ?? agent.spec.aggregator?.storage?.size ?? defaultDiskBudget
  const budget = limitOf(text)
  const shares = ({ pipeline }: Claim) => own !== undefined || pipeline.kind === 'Pipeline'
  if (budget === undefined || !shares(claim)) return undefined
  const name = `${agent.metadata.namespace}/${agent.metadata.name}`
  return problemOf(claim, peers.filter(shares), (taken, { diskBytes }) => {
    const sum = taken.diskBytes + diskBytes
    if (diskBytes === 0 || sum <= budget) return undefined
    return `Agent ${name} has ${bytesText(budget)} for disk buffers, and with this Pipeline ${bytesText(sum)} are required (T10)${own === undefined ? raisedBy(agent) : ''}`
  })
}

function raisedBy({ spec: { mode } }: Agent): string {
  if (mode === 'Sidecar') return ''
  const field = mode === 'Aggregator' ? 'spec.aggregator.storage.size' : 'spec.node.dataDir.diskBudget'
  return `; set another limit with ${field} of the Agent`
}

/**
 * The finding for a Pipeline after all older ones received their shares. It only depends on those, so younger Pipelines, and
 * refused ones that do not run, never change it.
 */
function problemOf(
  { pipeline, wanted }: Claim,
  peers: readonly Claim[],
  find: (taken: Taken, need: Need) => string | undefined,
): string | undefined {
  if (wanted === undefined) return undefined
  let taken: Taken = { pipelines: 0, components: 0, diskBytes: 0 }
  const older = peers.filter((peer) => byAge(peer.pipeline, pipeline) < 0)
  for (const peer of older.toSorted((left, right) => byAge(left.pipeline, right.pipeline))) {
    const fits = peer.wanted !== undefined && find(taken, peer.wanted) === undefined
    const need = fits ? peer.wanted : peer.running
    if (need === undefined) continue
    const { pipelines, components, diskBytes } = taken
    taken = {
      pipelines: pipelines + 1,
      components: components + need.components,
      diskBytes: diskBytes + need.diskBytes,
    }
  }
  return find(taken, wanted)
}

/** The requirements of a Pipeline's newest version, if it may run, and the use of the running version. */
export function claimOf(pipeline: Pipeline, newest: Artifact | undefined, running: Artifact | undefined): Claim {
  const { sources, transforms = [], sinks } = pipeline.spec
  return {
    pipeline,
    wanted: newest && {
      components: sources.length + transforms.length + sinks.length,
      diskBytes: newest.diskBufferBytes,
    },
    running: running && { components: componentsIn(running), diskBytes: running.diskBufferBytes },
  }
}

function componentsIn({ hub, sources, transforms, sinks }: Artifact): number {
  return [hub.subscriptions, sources, transforms, sinks].reduce((sum, table) => sum + Object.keys(table).length, 0)
}
