// Determines which pipelines of a revision concern a node: those that read pods on the node, and those with sources other than
// pods. A node receives a part of the revision; each part has a mark that identifies it. Pure.

import { createHash } from 'node:crypto'
import type { BundleSubscription } from '@penstock/agent/bundle'
import { compileSelection, type PodSelection } from '@penstock/agent/config'
import type { Fragment } from './fragment.ts'

type Labels = Readonly<Record<string, string>>

/** The fields of a node's pod that selectors use. */
export interface PlacedPod {
  readonly namespace: string
  readonly labels: Labels
}

interface Interest {
  /** Runs on every node. */
  readonly everywhere: boolean
  /** Names of namespaces, if it reads only these. */
  readonly namespaces: ReadonlySet<string> | undefined
  readonly selections: readonly PodSelection[]
}

interface Index {
  readonly everywhere: readonly Fragment[]
  /** Fragments that may read any namespace. */
  readonly anywhere: readonly Fragment[]
  readonly byNamespace: ReadonlyMap<string, readonly Fragment[]>
}

// Determined once for each content, because revisions share unchanged fragments.
const interests = new WeakMap<Fragment, Interest>()
const indexes = new WeakMap<ReadonlyMap<string, Fragment>, Index>()
const digests = new WeakMap<Fragment, string>()

/** The fragments of a revision that a node with these pods needs. */
export function concerned(
  fragments: ReadonlyMap<string, Fragment>,
  pods: readonly PlacedPod[],
  namespaceLabels: (namespace: string) => Labels | undefined,
): Fragment[] {
  const { everywhere, anywhere, byNamespace } = indexOf(fragments)
  const found = new Set(everywhere)
  for (const [namespace, those] of Map.groupBy(pods, (pod) => pod.namespace)) {
    const labels = namespaceLabels(namespace)
    for (const fragment of [...(byNamespace.get(namespace) ?? []), ...anywhere]) {
      if (found.has(fragment)) continue
      const reads = interestOf(fragment).selections.some(
        (selection) => selection.namespace(namespace, labels) && those.some((pod) => selection.pod(pod)),
      )
      if (reads) found.add(fragment)
    }
  }
  return [...found]
}

/** Equal for equal fragments with equal secret values, in any order. */
export function markOf(fragments: readonly Fragment[], valueDigests: Readonly<Record<string, string>>): string {
  const hash = createHash('sha256')
  for (const fragment of fragments.toSorted((left, right) => (left.id < right.id ? -1 : 1))) {
    hash.update(`${fragment.id} ${digestOf(fragment)}\n`)
    for (const { key } of fragment.secretRefs) hash.update(`${key} ${valueDigests[key] ?? ''}\n`)
  }
  return hash.digest('base64url')
}

function indexOf(fragments: ReadonlyMap<string, Fragment>): Index {
  const known = indexes.get(fragments)
  if (known !== undefined) return known
  const everywhere: Fragment[] = []
  const anywhere: Fragment[] = []
  const byNamespace = new Map<string, Fragment[]>()
  for (const fragment of fragments.values()) {
    const interest = interestOf(fragment)
    if (interest.everywhere) everywhere.push(fragment)
    else if (interest.namespaces === undefined) anywhere.push(fragment)
    for (const namespace of (interest.everywhere ? undefined : interest.namespaces) ?? []) {
      const those = byNamespace.get(namespace)
      if (those === undefined) byNamespace.set(namespace, [fragment])
      else those.push(fragment)
    }
  }
  const index = { everywhere, anywhere, byNamespace }
  indexes.set(fragments, index)
  return index
}

function interestOf(fragment: Fragment): Interest {
  const known = interests.get(fragment)
  if (known !== undefined) return known
  const subscriptions = fragment.subscriptions.map(([, json]) => JSON.parse(json) as BundleSubscription)
  const named = subscriptions.every(({ namespaces }) => namespaces !== undefined)
  const interest = {
    // A pipeline without subscriptions has sources other than pods.
    everywhere: fragment.sources.length > 0 || subscriptions.length === 0,
    namespaces: named ? new Set(subscriptions.flatMap(({ namespaces = [] }) => namespaces)) : undefined,
    // The fields of pods are unknown here; the agent checks field selectors.
    selections: subscriptions.map((subscription) => compileSelection({ ...subscription, fieldSelector: undefined })),
  }
  interests.set(fragment, interest)
  return interest
}

function digestOf(fragment: Fragment): string {
  const known = digests.get(fragment)
  if (known !== undefined) return known
  const { entry, subscriptions, sources, transforms, sinks } = fragment
  const hash = createHash('sha256').update(entry)
  for (const members of [subscriptions, sources, transforms, sinks]) {
    hash.update('\n')
    for (const [id, json] of members) hash.update(`${id} ${json}\n`)
  }
  const digest = hash.digest('base64url')
  digests.set(fragment, digest)
  return digest
}
