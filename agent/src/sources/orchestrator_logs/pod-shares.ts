// Limits the metadata kept for the pods of each namespace. Users who create pods decide the number of pods and the length of
// their labels and annotations, even for pods that never run. So each namespace has a share: beyond half of it, pods are kept
// without annotations, and beyond all of it, by name only. Lines are always read.

import type { ValueObject } from '../../event/value.ts'
import type { Pod } from './pod-metadata.ts'

export interface ShareLimits {
  /** Limit for the characters of all existing pods. */
  readonly maxLength: number
  /** Limit for the characters of the pods of one namespace. */
  readonly maxNamespaceLength: number
}

/** A node with a few hundred pods of several thousand characters each stays far below this limit. */
const defaultLimits: ShareLimits = { maxLength: 64 << 20, maxNamespaceLength: 16 << 20 }

/** Limit for the labels of a pod without annotations. */
const maxLabelsLength = 8192
/** Limit for the names of the containers of a pod that is kept by its name only. */
const maxExcludedLength = 1000

export class PodShares {
  readonly #limits: ShareLimits
  /** The size of each pod stored with full metadata, by folder. */
  readonly #taken = new Map<string, { readonly namespace: string; readonly length: number }>()
  readonly #namespaces = new Map<string, number>()
  #length = 0
  /** Number of pods with reduced metadata since the last call, by namespace. */
  #reduced = new Map<string, number>()

  constructor(limits: ShareLimits = defaultLimits) {
    this.#limits = limits
  }

  has(folder: string): boolean {
    return this.#taken.has(folder)
  }

  /** Returns the pod, reduced to the share of its namespace. */
  bounded(folder: string, pod: Pod): Pod {
    this.release(folder)
    const { maxNamespaceLength } = this.#limits
    if (this.#take(folder, pod, maxNamespaceLength / 2)) return pod
    this.#reduced.set(pod.namespace, (this.#reduced.get(pod.namespace) ?? 0) + 1)
    const reduced: Pod = { ...pod, annotations: nothing }
    const isSmall = pod.labels === undefined || lengthOf(pod.labels) <= maxLabelsLength
    if (isSmall && this.#take(folder, reduced, maxNamespaceLength)) return reduced
    return nameOf(pod)
  }

  /** Releases the size of a pod that was removed or replaced. */
  release(folder: string): void {
    const taken = this.#taken.get(folder)
    if (taken === undefined) return
    this.#taken.delete(folder)
    this.#length -= taken.length
    const left = (this.#namespaces.get(taken.namespace) ?? 0) - taken.length
    if (left > 0) this.#namespaces.set(taken.namespace, left)
    else this.#namespaces.delete(taken.namespace)
  }

  /** Number of pods with reduced metadata since the last call, by namespace. */
  takeReduced(): ReadonlyMap<string, number> {
    const reduced = this.#reduced
    if (reduced.size > 0) this.#reduced = new Map()
    return reduced
  }

  #take(folder: string, pod: Pod, maxNamespaceLength: number): boolean {
    const { namespace } = pod
    const length = lengthOfPod(pod)
    const used = (this.#namespaces.get(namespace) ?? 0) + length
    // When the total is used up, each namespace still gets an equal part.
    const isRoom = this.#length + length <= this.#limits.maxLength || used <= this.#equalPart(namespace)
    if (used > maxNamespaceLength || !isRoom) return false
    this.#taken.set(folder, { namespace, length })
    this.#namespaces.set(namespace, used)
    this.#length += length
    return true
  }

  #equalPart(namespace: string): number {
    return this.#limits.maxLength / (this.#namespaces.size + (this.#namespaces.has(namespace) ? 0 : 1))
  }
}

const nothing: ValueObject = Object.freeze({})
const noContainers: Pod['containers'] = new Map([])
const noNames: Pod['excludedContainers'] = new Set([])

function nameOf({ name, namespace, uid, node, excludedContainers }: Pod): Pod {
  let length = 0
  for (const container of excludedContainers) length += container.length
  return {
    name,
    namespace,
    uid,
    node,
    ip: undefined,
    ips: undefined,
    owner: undefined,
    labels: undefined,
    annotations: nothing,
    containers: noContainers,
    excludedContainers: excludedContainers.size === 0 || length > maxExcludedLength ? noNames : excludedContainers,
  }
}

/** Overhead of an API object in characters, in addition to its texts. */
const objectLength = 2000

/** Characters of texts, plus about as much for the objects that hold them. */
export function lengthOf(texts: ValueObject): number {
  let length = 0
  for (const name in texts) length += 50 + name.length + String(texts[name]).length
  return length
}

export function lengthOfPod({ labels, annotations, containers }: Pod): number {
  let length = objectLength + lengthOf(annotations) + (labels === undefined ? 0 : lengthOf(labels))
  for (const [name, { image, imageId, id }] of containers) {
    length += 200 + name.length + (image?.length ?? 0) + (imageId?.length ?? 0) + (id?.length ?? 0)
  }
  return length
}
