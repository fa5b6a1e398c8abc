// Determines which Pipelines an Agent runs, in which version, and why it does not run the others. Reads only its
// arguments.

import { type Agent, excessOf, isTenants, refusalOf, remedyOf, selectsPipeline } from '../../api/agent.ts'
import type { Finding } from '../../api/conditions.ts'
import type { KubeObject } from '../../api/object.ts'
import type { Artifact, SecretRef } from '../../compile/artifact.ts'
import type { OperatorContext } from '../../context.ts'
import { digestOf, type RolledBack, shortRetry } from '../../fleet/rolled-back.ts'
import type { Delivered, RolloutRecord } from '../../fleet/state.ts'
import { type BundledPipeline, older } from '../../render/bundle.ts'
import { type Fragment, fragmentOf } from '../../render/fragment.ts'
import { slotBytes } from '../../render/slots.ts'
import { secretSlots } from '../../workloads/names.ts'

const maxValueBytes = 64 * 1024
const maxPemBytes = 256 * 1024
/** Limit for the values of one revision; the other half is for those of the previous revision. */
const maxValuesBytes = (secretSlots * slotBytes) / 2

/**
 * The versions to run. A version that was rolled back is replaced by the stable one until it changes or is retried. The stable version of
 * a Pipeline also runs while its newest one is unknown.
 */
export function selectFragments(
  artifacts: Iterable<Artifact>,
  { rolledBack, withheld = [] }: Pick<RolloutRecord, 'rolledBack' | 'withheld'>,
  stable: ReadonlyMap<string, Fragment>,
  unknown: ReadonlySet<string> = new Set(),
): {
  readonly entries: readonly BundledPipeline[]
  readonly rolledBack: RolledBack
  /** The withheld versions that still apply, by Pipeline. */
  readonly withheld: ReadonlyMap<string, string>
} {
  const entries: BundledPipeline[] = []
  const still = new Set<string>()
  const known = new Set(withheld)
  const stillWithheld = new Map<string, string>()
  for (const artifact of artifacts) {
    const { id, hash } = artifact
    let fragment: Fragment | undefined = fragmentOf(artifact)
    const retry = shortRetry(artifact.retry)
    const back = rolledBack[id]
    const isBack = back !== undefined && back.hash === hash && back.retry === retry
    if (isBack) still.add(id)
    const digest = isBack || known.size === 0 ? '' : digestOf({ id, hash, retry })
    if (known.has(digest)) stillWithheld.set(id, digest)
    if (isBack || stillWithheld.has(id)) {
      fragment = stable.get(id)
      // All agents received it at once because it was new, so there is no earlier version.
      if (fragment?.hash === hash) fragment = undefined
    }
    if (fragment !== undefined) entries.push({ fragment, createdAt: artifact.createdAt })
  }
  for (const id of unknown) {
    const fragment = stable.get(id)
    if (fragment !== undefined) entries.push({ fragment, createdAt: '' })
    if (rolledBack[id] !== undefined) still.add(id)
  }
  return {
    entries,
    rolledBack: Object.fromEntries(Object.entries(rolledBack).filter(([id]) => still.has(id))),
    withheld: stillWithheld,
  }
}

/**
 * Removes the revisions with a Pipeline that the Agent may not run: an earlier operator was less strict, the namespace belonged to
 * the platform, or the owner of a shared object has withdrawn the grant. No rollout keeps these revisions, and no request returns to
 * them.
 */
export function dropRevisions(delivered: Delivered, mayCarry: (fragment: Fragment) => boolean): boolean {
  let found = false
  for (const [rev, { fragments }] of delivered.revisions) {
    if ([...fragments.values()].every(mayCarry)) continue
    delivered.revisions.delete(rev)
    found = true
    if (delivered.candidate?.rev === rev) delivered.candidate = undefined
    // Later candidates contain the same Pipeline.
    const at = delivered.later?.findIndex((each) => each.rev === rev) ?? -1
    if (at >= 0) delivered.later = delivered.later?.slice(0, at) ?? []
    if (delivered.stable?.rev === rev) delivered.stable = undefined
  }
  return found
}

/** The API server failed to return a value. */
export const unreadable = Symbol('unreadable')

export interface Valued {
  readonly entries: readonly BundledPipeline[]
  /** Values by their keys. */
  readonly of: Map<string, Buffer>
  /** Why a Pipeline does not run in its newest version, by Pipeline. */
  readonly reasons: Map<string, string>
}

/** Keeps the Pipelines whose values exist and fit, older Pipelines first. Any other keeps its stable version if possible. */
export async function withValues(
  entries: readonly BundledPipeline[],
  stable: ReadonlyMap<string, Fragment>,
  read: (ref: SecretRef) => Promise<Buffer | typeof unreadable | undefined>,
): Promise<Valued> {
  const of = new Map<string, Buffer>()
  const reasons = new Map<string, string>()
  const kept: BundledPipeline[] = []
  let taken = 0
  const include = async (entry: BundledPipeline): Promise<string | undefined> => {
    const found = new Map<string, Buffer>()
    for (const ref of entry.fragment.secretRefs) {
      const value = of.get(ref.key) ?? (await read(ref))
      if (value === undefined) return 'A value that it refers to does not exist.'
      if (value === unreadable) return 'The API server does not let the operator read a value that it refers to.'
      const max = value.includes('-----BEGIN ') ? maxPemBytes : maxValueBytes
      if (value.length > max) return `A value that it refers to has ${value.length} bytes; the limit is ${max}.`
      found.set(ref.key, value)
    }
    let added = 0
    for (const [key, value] of found) if (!of.has(key)) added += key.length + value.length
    // The new and the old values together must fit into the Secrets (T14).
    if (taken + added > maxValuesBytes) {
      return "The Agent's space for secret values is full; younger Pipelines are excluded."
    }
    taken += added
    for (const [key, value] of found) of.set(key, value)
    return undefined
  }
  for (const entry of entries.toSorted(older)) {
    const problem = await include(entry)
    if (problem === undefined) {
      kept.push(entry)
      continue
    }
    reasons.set(entry.fragment.id, problem)
    const before = stable.get(entry.fragment.id)
    if (before === undefined || before === entry.fragment) continue
    const earlier = { ...entry, fragment: before }
    if ((await include(earlier)) === undefined) kept.push(earlier)
  }
  return { entries: kept, of, reasons }
}

/** The condition for a tenant's Agent that selects more than it receives. */
export function narrowedOf(
  agent: Agent,
  artifacts: Iterable<Artifact>,
  namespaces: Iterable<KubeObject>,
  settings: OperatorContext['settings'],
): Finding | undefined {
  if (!isTenants(agent, settings)) return undefined
  const { namespace: own } = agent.metadata
  let home: KubeObject | undefined
  const others: KubeObject['metadata']['labels'][] = []
  for (const namespace of namespaces) {
    if (namespace.metadata.name === own) home = namespace
    else others.push(namespace.metadata.labels)
  }
  const narrowed = (message: string): Finding => ({
    type: 'Narrowed',
    status: 'True',
    reason: 'NamespaceNotAllowed',
    message,
  })
  const excess = excessOf(agent, others, settings)
  if (excess !== undefined) return narrowed(`${excess.message}. ${excess.help}`)
  for (const artifact of artifacts) {
    if (artifact.namespace !== own) continue
    if (!selectsPipeline(agent, artifact, home?.metadata.labels, settings)) continue
    const refusal = refusalOf(agent, artifact, settings)
    if (refusal !== undefined)
      return narrowed(`Pipeline ${artifact.id} does not run here: ${refusal}. ${remedyOf(artifact, agent)}`)
  }
  return undefined
}
