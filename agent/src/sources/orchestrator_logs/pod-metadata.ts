// Metadata of pods, namespaces and the node. The name of the log folder identifies a pod. Objects here are replaced and never
// changed, so a new identity shows that data derived from an object is stale.

import type { ValueObject } from '../../event/value.ts'
import type { WatchedObject } from '../../kube/watch.ts'
import { type PodFields, podFields } from './field-selector.ts'
import { lengthOf, lengthOfPod, PodShares, type ShareLimits } from './pod-shares.ts'
import { excludedContainers } from './selection.ts'

interface ContainerStatus {
  readonly name: string
  readonly imageID?: string
  readonly containerID?: string
}

export interface PodObject extends WatchedObject {
  readonly spec?: {
    readonly nodeName?: string
    readonly restartPolicy?: string
    readonly schedulerName?: string
    readonly serviceAccountName?: string
    readonly hostNetwork?: boolean
    readonly containers?: readonly { readonly name: string; readonly image?: string }[]
    readonly initContainers?: readonly { readonly name: string; readonly image?: string }[]
    readonly ephemeralContainers?: readonly { readonly name: string; readonly image?: string }[]
  }
  readonly status?: {
    readonly phase?: string
    readonly nominatedNodeName?: string
    readonly podIP?: string
    readonly podIPs?: readonly { readonly ip: string }[]
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
    readonly ephemeralContainerStatuses?: readonly ContainerStatus[]
  }
}

export interface Container {
  image: string | undefined
  imageId: string | undefined
  id: string | undefined
}

export interface Pod {
  readonly name: string
  readonly namespace: string
  readonly uid: string | undefined
  readonly node: string | undefined
  readonly ip: string | undefined
  readonly ips: string[] | undefined
  readonly owner: string | undefined
  /** RFC 3339 text; undefined if an older version stored the pod. */
  readonly created?: string | undefined
  /** Undefined if the share of the namespace only allows the pod's name. */
  readonly labels: ValueObject | undefined
  readonly annotations: ValueObject
  readonly containers: ReadonlyMap<string, Container>
  readonly excludedContainers: ReadonlySet<string>
  /** The fields for field selectors; undefined if an older version stored the pod. */
  readonly fields?: PodFields | undefined
  /** Namespace labels stored with a pod before the start, because the namespace may no longer exist either. */
  readonly namespaceLabels?: ValueObject | undefined
}

/** Name of a pod's log folder. For a static pod it contains the hash of the manifest. */
export function folderOf(object: WatchedObject): string {
  const { namespace = '', name, uid = '', annotations } = object.metadata
  return `${namespace}_${name}_${annotations?.['kubernetes.io/config.mirror'] ?? uid}`
}

/** The parts of a folder's name; undefined if it does not belong to a pod. No part can contain an underscore. */
export function parseFolder(folder: string): { namespace: string; name: string; uid: string } | undefined {
  const parts = folder.split('_')
  const [namespace, name, uid] = parts
  return parts.length === 3 && namespace && name && uid ? { namespace, name, uid } : undefined
}

function podFrom(object: PodObject): Pod {
  const { metadata, spec, status } = object
  const containers = new Map<string, Container>()
  for (const list of [spec?.ephemeralContainers, spec?.initContainers, spec?.containers]) {
    for (const { name, image } of list ?? []) containers.set(name, { image, imageId: undefined, id: undefined })
  }
  for (const list of [status?.ephemeralContainerStatuses, status?.initContainerStatuses, status?.containerStatuses]) {
    for (const { name, imageID, containerID } of list ?? []) {
      const container = containers.get(name)
      if (container === undefined) continue
      container.imageId = imageID || undefined
      container.id = containerID || undefined
    }
  }
  const owner = metadata.ownerReferences?.[0]
  const annotations = metadata.annotations ?? {}
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    uid: metadata.uid,
    node: spec?.nodeName,
    ip: status?.podIP,
    ips: status?.podIPs?.map((address) => address.ip),
    owner: owner === undefined ? undefined : `${owner.kind}/${owner.name}`,
    created: metadata.creationTimestamp,
    labels: (metadata.labels ?? {}) as ValueObject,
    annotations: annotations as ValueObject,
    containers,
    excludedContainers: excludedContainers(annotations),
    fields: podFields(object),
  }
}

/** Limit for the characters of labels and annotations of removed objects that are still kept. */
export const maxRemovedLength = 16 << 20

/** Objects by key. A removal takes effect later, so that late lines still find their object. */
class Kept<T> {
  /** Grows with every change. */
  revision = 0
  readonly #objects = new Map<string, T>()
  /** Removal times of the objects still kept, oldest first, and how long each is kept. */
  readonly #removals = new Map<string, { readonly at: number; readonly length: number }>()
  #removedLength = 0
  readonly #lengthOf: (object: T) => number
  delayMs = 0

  constructor(lengthOf: (object: T) => number) {
    this.#lengthOf = lengthOf
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  entries(): Iterable<[string, T]> {
    return this.#objects
  }

  set(key: string, object: T): void {
    this.revision++
    this.#objects.set(key, object)
    this.#restore(key)
  }

  remove(key: string, now: number): void {
    const object = this.#objects.get(key)
    if (object === undefined || this.#removals.has(key)) return
    this.revision++
    const length = this.#lengthOf(object)
    this.#removedLength += length
    this.#removals.set(key, { at: now, length })
  }

  #restore(key: string): void {
    const removal = this.#removals.get(key)
    if (removal === undefined) return
    this.#removedLength -= removal.length
    this.#removals.delete(key)
  }

  removedAt(key: string): number | undefined {
    return this.#removals.get(key)?.at
  }

  /** @param isOurs whether the call may replace an object; all if not given */
  replace(objects: ReadonlyMap<string, T>, now: number, isOurs: (object: T) => boolean = () => true): void {
    for (const [key, object] of this.#objects) if (!objects.has(key) && isOurs(object)) this.remove(key, now)
    for (const [key, object] of objects) this.set(key, object)
  }

  /**
   * Forgets objects removed long enough ago, and returns their keys. Users can create and remove pods at any rate, so if there are
   * too many, the oldest removals are forgotten early.
   */
  expire(now: number): string[] {
    const expired: string[] = []
    for (const [key, { at }] of this.#removals) {
      if (now < at + this.delayMs && this.#removedLength <= maxRemovedLength) continue
      this.revision++
      this.#restore(key)
      this.#objects.delete(key)
      expired.push(key)
    }
    return expired
  }
}

export class PodMetadata {
  readonly #pods = new Kept<Pod>(lengthOfPod)
  readonly #namespaces = new Kept<ValueObject>(lengthOfLabels)
  readonly #nodes = new Kept<ValueObject>(lengthOfLabels)
  readonly #shares: PodShares

  constructor(limits?: ShareLimits) {
    this.#shares = new PodShares(limits)
  }

  /** Changes whenever any metadata changes. */
  get revision(): number {
    return this.#pods.revision + this.#namespaces.revision + this.#nodes.revision
  }

  pod(folder: string): Pod | undefined {
    return this.#pods.get(folder)
  }

  /** When a known pod was deleted; undefined if it was not deleted, or is unknown. */
  deletedAt(folder: string): number | undefined {
    return this.#pods.removedAt(folder)
  }

  get delayMs(): number {
    return this.#pods.delayMs
  }

  /** Keeps deleted objects for this long, if that is longer than before. */
  keepFor(delayMs: number): void {
    for (const kept of [this.#pods, this.#namespaces, this.#nodes]) kept.delayMs = Math.max(kept.delayMs, delayMs)
  }

  /** All known pods, by folder. */
  pods(): Iterable<[string, Pod]> {
    return this.#pods.entries()
  }

  /** Adds the last known metadata of a deleted pod. */
  restorePod(folder: string, pod: Pod): void {
    if (this.#pods.get(folder) !== undefined) return
    this.#pods.set(folder, pod)
    this.#pods.remove(folder, Date.now())
  }

  /** Labels of a namespace; undefined if the namespace is unknown. */
  namespaceLabels(name: string): ValueObject | undefined {
    return this.#namespaces.get(name)
  }

  nodeLabels(name: string): ValueObject | undefined {
    return this.#nodes.get(name)
  }

  setPod(object: PodObject): void {
    const folder = folderOf(object)
    this.#pods.set(folder, this.#shares.bounded(folder, podFrom(object)))
  }

  removePod(object: WatchedObject): void {
    const folder = folderOf(object)
    this.#shares.release(folder)
    this.#pods.remove(folder, Date.now())
  }

  /** @param namespace whose pods these are; undefined: these are all pods */
  replacePods(objects: readonly PodObject[], namespace?: string): void {
    const isOurs = (pod: Pod) => namespace === undefined || pod.namespace === namespace
    const found = new Map<string, PodObject>()
    for (const object of objects) found.set(folderOf(object), object)
    for (const [folder, pod] of this.#pods.entries()) {
      if (isOurs(pod) && !found.has(folder)) this.#shares.release(folder)
    }
    const pods = new Map<string, Pod>()
    const take = (folder: string, object: PodObject) => {
      pods.set(folder, this.#shares.bounded(folder, podFrom(object)))
    }
    // Known pods keep their metadata, even if the share is smaller now.
    for (const [folder, object] of found) if (this.#shares.has(folder)) take(folder, object)
    for (const [folder, object] of found) if (!pods.has(folder)) take(folder, object)
    this.#pods.replace(pods, Date.now(), isOurs)
  }

  /** Number of pods with reduced metadata since the last call, by namespace. */
  takeReduced(): ReadonlyMap<string, number> {
    return this.#shares.takeReduced()
  }

  setLabels(kind: 'namespaces' | 'nodes', object: WatchedObject): void {
    this.#kept(kind).set(object.metadata.name, labelsOf(object))
  }

  removeLabels(kind: 'namespaces' | 'nodes', object: WatchedObject): void {
    this.#kept(kind).remove(object.metadata.name, Date.now())
  }

  replaceLabels(kind: 'namespaces' | 'nodes', objects: readonly WatchedObject[]): void {
    const labels = new Map<string, ValueObject>()
    for (const object of objects) labels.set(object.metadata.name, labelsOf(object))
    this.#kept(kind).replace(labels, Date.now())
  }

  #kept(kind: 'namespaces' | 'nodes'): Kept<ValueObject> {
    return kind === 'namespaces' ? this.#namespaces : this.#nodes
  }

  /** Forgets objects removed long enough ago; returns the folders of the removed pods. */
  expire(now: number): string[] {
    this.#namespaces.expire(now)
    this.#nodes.expire(now)
    return this.#pods.expire(now)
  }
}

function labelsOf(object: WatchedObject): ValueObject {
  return (object.metadata.labels ?? {}) as ValueObject
}

/** Characters of the labels of a removed namespace or node, and of its object. */
function lengthOfLabels(labels: ValueObject): number {
  return 2000 + lengthOf(labels)
}
