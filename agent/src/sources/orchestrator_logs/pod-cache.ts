// Stored pod metadata: after a restart, a pod may no longer exist in the API although its lines are still unread. Each pod has a
// file, which is written when its content changes, and removed with the pod's folder.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorText } from '../../errors.ts'
import type { ValueObject } from '../../event/value.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Pod, PodMetadata } from './pod-metadata.ts'

const delayMs = 1000

interface Entry {
  readonly folder: string
  readonly pod: Omit<Pod, 'containers' | 'excludedContainers'> & {
    readonly containers: readonly [string, ReturnType<Pod['containers']['get']>][]
    readonly excludedContainers: readonly string[]
  }
}

export class PodCache {
  readonly #directory: string
  readonly #metadata: PodMetadata
  readonly #logger: Logger
  /** Digests of the files on disk, by folder. */
  readonly #written = new Map<string, string>()
  /** The records on disk, of pods that may no longer exist. */
  readonly #known = new Map<string, Pod>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #failed = false

  constructor(directory: string, metadata: PodMetadata, logger: Logger) {
    this.#directory = directory
    this.#metadata = metadata
    this.#logger = logger
    for (const text of texts(directory)) {
      const entry = parse(text)
      if (entry === undefined) continue // truncated by a power loss: the source looks the pod up again
      this.#written.set(entry.folder, digest(text))
      this.#known.set(entry.folder, entry.pod)
    }
  }

  /** The last known metadata of a deleted pod. */
  get(folder: string): Pod | undefined {
    return this.#known.get(folder)
  }

  /** Schedules a write of the current metadata. */
  changed(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#writing = (this.#writing ?? Promise.resolve()).then(() => this.#write())
    }, delayMs)
  }

  /** Forgets pods whose folders no longer exist. */
  prune(isPresent: (folder: string) => boolean): void {
    for (const folder of [...this.#written.keys()]) {
      if (this.#metadata.pod(folder) !== undefined || isPresent(folder)) continue
      this.#written.delete(folder)
      this.#known.delete(folder)
      void rm(this.#path(folder), { force: true }).catch(() => {}) // if this fails, the next start reads the file once more and forgets it
    }
  }

  async close(): Promise<void> {
    if (this.#timer !== undefined) {
      clearTimeout(this.#timer)
      this.#timer = undefined
      await this.#writing
      await this.#write()
    }
    await this.#writing
  }

  #path(folder: string): string {
    // Uses a hash, because a folder name may already have the maximum length, with no room for `.json`.
    return join(this.#directory, `${createHash('sha256').update(folder).digest('hex').slice(0, 32)}.json`)
  }

  async #write(): Promise<void> {
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 })
      for (const [folder, pod] of this.#metadata.pods()) {
        if (pod.labels === undefined) continue // the name of the record equals that of the folder
        const text = textOf(folder, pod, this.#metadata.namespaceLabels(pod.namespace) ?? pod.namespaceLabels)
        const mark = digest(text)
        if (this.#written.get(folder) === mark) continue
        const path = this.#path(folder)
        await writeFile(`${path}.new`, text, { mode: 0o600 })
        await rename(`${path}.new`, path)
        this.#written.set(folder, mark)
        this.#known.set(folder, pod)
      }
      this.#failed = false
    } catch (error) {
      if (this.#failed) return
      this.#failed = true
      const fields = { directory: this.#directory, error: errorText(error) }
      this.#logger.warn(fields, 'Could not write the metadata of pods; after a restart, lines of deleted pods lack it.')
    }
  }
}

function textOf(folder: string, pod: Pod, namespaceLabels: ValueObject | undefined): string {
  const { containers, excludedContainers, ...rest } = pod
  const entry: Entry = {
    folder,
    pod: { ...rest, namespaceLabels, containers: [...containers], excludedContainers: [...excludedContainers] },
  }
  return JSON.stringify(entry)
}

function parse(text: string): { readonly folder: string; readonly pod: Pod } | undefined {
  try {
    const { folder, pod } = JSON.parse(text) as Entry
    if (typeof folder !== 'string' || typeof pod.name !== 'string') return undefined
    const { containers, excludedContainers, ...rest } = pod
    return {
      folder,
      pod: {
        ...rest,
        containers: new Map(containers as Iterable<[string, NonNullable<ReturnType<Pod['containers']['get']>>]>),
        excludedContainers: new Set(excludedContainers),
      },
    }
  } catch {
    return undefined
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

function* texts(directory: string): Iterable<string> {
  let names: string[]
  try {
    names = readdirSync(directory)
  } catch {
    return // the first start
  }
  for (const name of names) {
    if (!name.endsWith('.json')) continue
    try {
      yield readFileSync(join(directory, name), 'utf8')
    } catch {
      // A damaged file counts as missing.
    }
  }
}
