// The rest of the first compile after a start. A verdict about a quota needs the sizes of the Pipelines that share it, so it waits
// until those have been compiled; every other verdict is given as soon as its own Pipeline has been.

import { type KubeObject, keyOf } from '../../api/object.ts'

/** The Pipelines that must have been compiled before one of them can be judged. */
export type Peers = 'none' | 'namespace' | 'all'

export class FirstCompile {
  /** Keys that have not been compiled, by namespace; no set is empty. */
  readonly #left = new Map<string, Set<string>>()
  /** Keys that have been compiled, and wait for the others of their namespace. */
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

  /** Whether a Pipeline that has just been compiled cannot be judged yet. */
  holds(pipeline: KubeObject, peers: Peers): boolean {
    const [space, key] = [spaceOf(pipeline), nameOf(pipeline)]
    const isLeft = (keys: ReadonlySet<string>) => keys.size > (keys.has(key) ? 1 : 0)
    if (peers === 'none') return false
    if (peers === 'all') return [...this.#left.values()].some(isLeft)
    if (!isLeft(this.#left.get(space) ?? new Set())) return false
    this.#held.set(space, (this.#held.get(space) ?? new Set()).add(key))
    return true
  }

  /** Marks a key as compiled; returns those that waited for its namespace and can be judged now. */
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

/** Of a key such as `Pipeline shop/checkout`; empty for those of the cluster. */
export const namespaceOf = (key: string) =>
  key.slice(key.indexOf(' ') + 1, Math.max(key.indexOf(' ') + 1, key.indexOf('/')))

const spaceOf = ({ metadata }: KubeObject) => metadata.namespace ?? ''
const nameOf = (pipeline: KubeObject) => `${pipeline.kind} ${keyOf(pipeline)}`
