// One pipeline's share of a bundle as text, rendered once from an artifact or taken from an active bundle. Bundles are assembled from
// fragments, so with thousands of pipelines only the changed ones cost time.

import { type Bundle, type BundlePipeline, canonicalJson, pipelineOf } from '@penstock/agent/bundle'
import type { EgressOptions } from '@penstock/agent/config'
import type { Artifact, SecretRef, Tenancy } from '../compile/artifact.ts'

type Members = readonly (readonly [id: string, json: string])[]

export interface Fragment {
  readonly id: string
  readonly uid: string
  readonly generation: number
  /** Hash of the content: agents run fragments with equal hashes identically. */
  readonly hash: string
  /** Canonical JSON of the entry of `pipelines`. */
  readonly entry: string
  /** By component id. */
  readonly subscriptions: Members
  readonly sources: Members
  readonly transforms: Members
  readonly sinks: Members
  readonly secretRefs: readonly SecretRef[]
}

/** A bundle's data about a pipeline; the operator reads its own members back after a restart. */
export interface BundleEntry extends BundlePipeline {
  readonly secrets?: readonly SecretRef[]
}

const fragments = new WeakMap<Artifact, Fragment>()

export function fragmentOf(artifact: Artifact): Fragment {
  let known = fragments.get(artifact)
  if (known === undefined) {
    known = build(artifact)
    fragments.set(artifact, known)
  }
  return known
}

function build(artifact: Artifact): Fragment {
  const { id, uid, generation, hash, tenancy, secretRefs } = artifact
  const entry: BundleEntry = {
    uid,
    generation,
    hash,
    ...(tenancy.restricted ? { restricted: true, egress: egressOf(tenancy), cpuShare: tenancy.cpuShare } : {}),
    ...(tenancy.restricted && tenancy.programBudget !== undefined ? { programBudget: tenancy.programBudget } : {}),
    ...(artifact.platform === undefined ? {} : { platform: artifact.platform }),
    ...(artifact.deadLetter === undefined ? {} : { deadLetter: artifact.deadLetter }),
    ...(secretRefs.length === 0 ? {} : { secrets: byKey(secretRefs) }),
  }
  const subscriptions = artifact.hub.subscriptions.map((subscription) => {
    const { podSelector, excludeContainers, limits, ...rest } = subscription
    return [
      subscription.out,
      canonicalJson({
        ...rest,
        ...(podSelector === '' ? {} : { podSelector }),
        ...(excludeContainers.length === 0 ? {} : { excludeContainers }),
        ...(limits === undefined ? {} : { limits }),
      }),
    ] as const
  })
  return {
    id,
    uid,
    generation,
    hash,
    entry: canonicalJson(entry),
    subscriptions,
    sources: members(artifact.sources),
    transforms: members(artifact.transforms),
    sinks: members(artifact.sinks),
    secretRefs: byKey(secretRefs),
  }
}

/** The pipelines of a previously rendered bundle. */
export function fragmentsOf(bundle: Bundle): Map<string, Fragment> {
  const found = new Map<string, Fragment>()
  const subscriptions = Map.groupBy(bundle.hub.subscriptions, ({ out }) => pipelineOf(out))
  const grouped = (components: Readonly<Record<string, object>> | undefined) =>
    Map.groupBy(Object.entries(components ?? {}), ([id]) => pipelineOf(id))
  const sources = grouped(bundle.sources)
  const transforms = grouped(bundle.transforms)
  const sinks = grouped(bundle.sinks)
  for (const [id, pipeline] of Object.entries(bundle.pipelines)) {
    const entry = pipeline as BundleEntry
    found.set(id, {
      id,
      uid: entry.uid,
      generation: entry.generation,
      hash: entry.hash,
      entry: canonicalJson(entry),
      subscriptions: (subscriptions.get(id) ?? []).map((each) => [each.out, canonicalJson(each)] as const),
      sources: members(Object.fromEntries(sources.get(id) ?? [])),
      transforms: members(Object.fromEntries(transforms.get(id) ?? [])),
      sinks: members(Object.fromEntries(sinks.get(id) ?? [])),
      secretRefs: entry.secrets ?? [],
    })
  }
  return found
}

function egressOf({ denyCidrs, allowHosts, implicitCredentials }: Tenancy): EgressOptions {
  return {
    deny: [...denyCidrs].sort(),
    ...(allowHosts.length === 0 ? {} : { allowHosts: [...allowHosts].sort() }),
    ...(implicitCredentials === true ? { implicitCredentials } : {}),
  }
}

function members(components: Readonly<Record<string, object>>): Members {
  return Object.entries(components).map(([id, options]) => [id, canonicalJson(options)] as const)
}

function byKey(refs: readonly SecretRef[]): readonly SecretRef[] {
  return refs.toSorted((left, right) => (left.key < right.key ? -1 : left.key > right.key ? 1 : 0))
}
