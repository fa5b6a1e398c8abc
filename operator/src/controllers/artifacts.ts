// The newest accepted version of every Pipeline, in memory, with notifications of changes.

import type { Artifact } from '../compile/artifact.ts'
import type { ArtifactChange, ArtifactStore } from '../context.ts'

export class Artifacts implements ArtifactStore {
  readonly #artifacts = new Map<string, Artifact>()
  readonly #handlers = new Set<(change: ArtifactChange | undefined) => void>()
  readonly #unknown = new Set<string>()
  #complete = false

  get complete(): boolean {
    return this.#complete
  }

  get(id: string): Artifact | undefined {
    return this.#artifacts.get(id)
  }

  values(): IterableIterator<Artifact> {
    return this.#artifacts.values()
  }

  get unknown(): ReadonlySet<string> {
    return this.#unknown
  }

  /** The Pipeline exists, but this process could not determine any of its versions yet. */
  setUnknown(id: string): void {
    if (this.#artifacts.has(id) || this.#unknown.has(id)) return
    this.#unknown.add(id)
    this.#notify(undefined)
  }

  subscribe(handler: (change: ArtifactChange | undefined) => void): Disposable {
    this.#handlers.add(handler)
    return { [Symbol.dispose]: () => void this.#handlers.delete(handler) }
  }

  /** Publishes a version; publishing the same version again has no effect. */
  set(artifact: Artifact): void {
    const previous = this.#artifacts.get(artifact.id)
    const same =
      previous !== undefined &&
      previous.hash === artifact.hash &&
      previous.uid === artifact.uid &&
      previous.generation === artifact.generation &&
      previous.retry === artifact.retry &&
      JSON.stringify(grantsOf(previous)) === JSON.stringify(grantsOf(artifact))
    this.#unknown.delete(artifact.id)
    if (same) return
    this.#artifacts.set(artifact.id, artifact)
    this.#notify({ id: artifact.id, current: artifact, previous })
  }

  remove(id: string): void {
    const previous = this.#artifacts.get(id)
    if (this.#unknown.delete(id)) this.#notify(undefined)
    if (previous === undefined) return
    this.#artifacts.delete(id)
    this.#notify({ id, current: undefined, previous })
  }

  /** Whether every Pipeline that existed at the start has been compiled. */
  markComplete(): void {
    if (this.#complete) return
    this.#complete = true
    this.#notify(undefined)
  }

  #notify(change: ArtifactChange | undefined): void {
    for (const handler of this.#handlers) handler(change)
  }
}

/** The data that determine which Agents may run it, and are not part of its content. */
function grantsOf({ labels, lent, withheld }: Artifact) {
  return { labels, lent, withheld }
}
