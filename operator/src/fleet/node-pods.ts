// The pods on each node, which determine the content of the node's agent. Only the location and labels of a pod are kept. A
// deleted pod counts for a while longer: its agent may still have unread lines of it, and reports that in its next request.

import type { KubeObject } from '../api/object.ts'
import type { Cache, CacheShape } from '../kube/cache.ts'
import { monotonicNow } from '../kube/clock.ts'
import type { PlacedPod } from '../render/interest.ts'

export type PodOnNode = KubeObject & { readonly spec?: { readonly nodeName?: string } }

export const podPlace: CacheShape = {
  name: 'place',
  of(object) {
    const { name, namespace, uid, resourceVersion, labels } = object.metadata
    const { nodeName } = (object as PodOnNode).spec ?? {}
    return {
      apiVersion: object.apiVersion,
      kind: object.kind,
      metadata: {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
        ...(labels === undefined ? {} : { labels }),
      },
      ...(nodeName === undefined ? {} : { spec: { nodeName } }),
    }
  },
}

interface Placed extends PlacedPod {
  /** When it was deleted. */
  goneAt?: number
}

/** Agents ask more often than that, even if the operator moves to another node in between. */
export const lingerMs = 180_000
const sweepMs = 30_000

export class NodePods implements Disposable {
  readonly #cache: Cache<PodOnNode>
  readonly #changed: (node: string) => void
  /** By node, by uid. */
  readonly #placed = new Map<string, Map<string, Placed>>()
  readonly #subscription: Disposable
  readonly #sweeping: NodeJS.Timeout

  constructor(cache: Cache<PodOnNode>, changed: (node: string) => void, now = monotonicNow) {
    this.#cache = cache
    this.#changed = changed
    this.#subscription = cache.subscribe(({ type, object, previous }) => {
      const { uid = '', namespace = '', labels = {} } = object.metadata
      const node = object.spec?.nodeName
      if (node === undefined) return
      if (type === 'deleted') {
        const placed = this.#placed.get(node)?.get(uid)
        if (placed !== undefined) placed.goneAt = now()
        return
      }
      const before = previous?.spec?.nodeName === node ? previous.metadata.labels : undefined
      if (before !== undefined && isSame(before, labels)) return
      let pods = this.#placed.get(node)
      if (pods === undefined) {
        pods = new Map()
        this.#placed.set(node, pods)
      }
      pods.set(uid, { namespace, labels })
      this.#changed(node)
    })
    this.#sweeping = setInterval(() => this.sweep(now()), sweepMs)
    this.#sweeping.unref()
  }

  get synced(): boolean {
    return this.#cache.synced
  }

  on(node: string): readonly PlacedPod[] {
    return [...(this.#placed.get(node)?.values() ?? [])]
  }

  /** Forgets pods deleted long ago. */
  sweep(now: number): void {
    for (const [node, pods] of this.#placed) {
      let fewer = false
      for (const [uid, { goneAt }] of pods) {
        if (goneAt === undefined || now - goneAt < lingerMs) continue
        pods.delete(uid)
        fewer = true
      }
      if (pods.size === 0) this.#placed.delete(node)
      if (fewer) this.#changed(node)
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#sweeping)
    this.#subscription[Symbol.dispose]()
  }
}

function isSame(left: Readonly<Record<string, string>>, right: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(left)
  return names.length === Object.keys(right).length && names.every((name) => left[name] === right[name])
}
