// The volumes of an aggregator: which remain after scaling down, which are empty, and whether a change of storage would recreate the
// workload. Pure: observations are arguments.

import type { Agent } from '../api/agent.ts'
import type { KubeObject } from '../api/object.ts'
import { quantityOf } from '../api/quantity.ts'
import { claimOrdinal, drainJobName, podName } from '../workloads/names.ts'

/** This annotation on the Agent allows a change that deletes and recreates its workload. */
export const allowRecreate = 'penstock.dev/allow-recreate'

export interface StatefulSetObject extends KubeObject {
  readonly spec?: {
    readonly replicas?: number
    readonly volumeClaimTemplates?: readonly {
      readonly spec?: {
        readonly storageClassName?: string
        readonly resources?: { readonly requests?: { readonly storage?: string } }
      }
    }[]
  }
}

export interface JobObject extends KubeObject {
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[]
  }
}

export interface SeenVolumes {
  readonly workload: StatefulSetObject | undefined
  readonly claims: Iterable<KubeObject>
  /** Names of the existing pods, including terminating ones. */
  readonly pods: ReadonlySet<string>
  job(name: string): JobObject | undefined
}

export interface VolumeWork {
  /** Ordinals whose volume a Job must drain. */
  readonly draining: readonly number[]
  /** Drained claims that can be deleted. */
  readonly emptied: readonly KubeObject[]
  readonly failed: readonly { readonly claim: KubeObject; readonly why: string }[]
}

/** The action for volumes of deleted pods. None for policies other than `Drain`. */
export function volumeWork(agent: Agent, seen: SeenVolumes): VolumeWork {
  const draining: number[] = []
  const emptied: KubeObject[] = []
  const failed: { claim: KubeObject; why: string }[] = []
  const { workload } = seen
  const isDraining = agent.spec.aggregator?.storage?.retention?.whenScaled === 'Drain'
  if (!isDraining || workload === undefined || workload.metadata.deletionTimestamp !== undefined)
    return { draining, emptied, failed }
  const replicas = workload.spec?.replicas ?? 1
  for (const claim of seen.claims) {
    const { name, namespace, deletionTimestamp } = claim.metadata
    if (namespace !== agent.metadata.namespace || deletionTimestamp !== undefined) continue
    const ordinal = claimOrdinal(agent, name)
    // A pod that still exists, or returns, handles its volume itself.
    if (ordinal === undefined || ordinal < replicas || seen.pods.has(podName(agent, ordinal))) continue
    draining.push(ordinal)
    const ends = seen.job(drainJobName(agent, ordinal))?.status?.conditions?.filter(({ status }) => status === 'True')
    if (ends?.some(({ type }) => type === 'Complete')) emptied.push(claim)
    const failure = ends?.find(({ type }) => type === 'Failed')
    if (failure !== undefined) failed.push({ claim, why: failure.message ?? 'it failed' })
  }
  return { draining: draining.sort((left, right) => left - right), emptied, failed }
}

export interface Recreation {
  /** Another kind of workload, or the same with other claim templates, which cannot be changed. */
  readonly kind: 'switch' | 'storage'
  /** Below `spec` of the Agent. */
  readonly path: string
  readonly what: string
}

/** How a change recreates the workload, if it does. */
export function recreation(
  agent: Agent,
  live: { readonly deployment: KubeObject | undefined; readonly set: StatefulSetObject | undefined },
): Recreation | undefined {
  if (agent.spec.mode !== 'Aggregator') return undefined
  const storage = agent.spec.aggregator?.storage
  const is = (object: KubeObject | undefined) => object !== undefined && object.metadata.deletionTimestamp === undefined
  const path = 'aggregator.storage'
  if (storage !== undefined && is(live.deployment) && !is(live.set))
    return { kind: 'switch', path, what: 'the Deployment becomes a StatefulSet' }
  if (storage === undefined && is(live.set) && !is(live.deployment))
    return { kind: 'switch', path, what: 'without it the StatefulSet becomes a Deployment, and its volumes stay' }
  const claim = is(live.set) ? live.set?.spec?.volumeClaimTemplates?.[0]?.spec : undefined
  if (storage === undefined || claim === undefined) return undefined
  const size = claim.resources?.requests?.storage
  if (quantityOf(size) !== quantityOf(storage.size)) {
    const what = `from ${size} to ${storage.size}: new volumes get it, existing ones keep their size`
    return { kind: 'storage', path: `${path}.size`, what }
  }
  // If no class is requested, the cluster has added its own.
  if (storage.storageClassName && claim.storageClassName !== storage.storageClassName) {
    const what = `from ${claim.storageClassName} to ${storage.storageClassName}: new volumes get it`
    return { kind: 'storage', path: `${path}.storageClassName`, what }
  }
  return undefined
}
