// The remaining part of the first compile after a start. A quota check needs the sizes of the Pipelines that share the quota, so
// it waits until those are compiled; every other result is available as soon as its own Pipeline is compiled.

import { type KubeObject, keyOf } from '../../api/object.ts'

/** The Pipelines that must be compiled before one of them can be checked. */
export type Peers = 'none' | 'namespace' | 'all'

export class FirstCompile {
  /** Keys not compiled yet, by namespace; no set is empty. */
  readonly #left = new Map<string, Set<string>>()
  /** Compiled keys that wait for the others of their namespace. */
  readonly #held = new Map<string, Set<string>>()

  constructor(pipelines: Iterable<KubeObject>) {
    for (const pipeline of pipelines) {
      const keys = this.#left.get(spaceOf(pipeline))
      if (keys === undefined) this.#left.set(spaceOf(pipeline), new Set([nameOf(pipeline)]))
      else keys.add(nameOf(pipeline))
    }
  }

  get isOver(): boolean {
    return this.#left.size === 0
  }

  /** Whether a compiled Pipeline cannot be checked yet. */
  holds(pipeline: KubeObject, peers: Peers): boolean {
    const [space, key] = [spaceOf(pipeline), nameOf(pipeline)]
    const isLeft = (keys: ReadonlySet<string>) => keys.size > (keys.has(key) ? 1 : 0)
    if (peers === 'none') return false
    if (peers === 'all') return [...this.#left.values()].some(isLeft)
    if (!isLeft(this.#left.get(space) ?? new Set())) return false
    this.#held.set(space, (this.#held.get(space) ?? new Set()).add(key))
    return true
  }

  /** Marks a key as compiled; returns the waiting keys of its namespace that can now be checked. */
  done(key: string): readonly string[] {
    const space = namespaceOf(key)
    const keys = this.#left.get(space)
    if (keys?.delete(key) !== true || keys.size > 0) return []
    this.#left.delete(space)
    const held = [...(this.#held.get(space) ?? [])]
    this.#held.delete(space)
    return held
  }
}

/** Namespace of a key such as `Pipeline shop/checkout`; empty for cluster-scoped keys. */
export const namespaceOf = (key: string) =>
  key.slice(key.indexOf(' ') + 1, Math.max(key.indexOf(' ') + 1, key.indexOf('/')))

const spaceOf = ({ metadata }: KubeObject) => metadata.namespace ?? ''
const nameOf = (pipeline: KubeObject) => `${pipeline.kind} ${keyOf(pipeline)}`
