// Folders of excluded pods, kept across restarts: if the API does not answer at start, no other record says that their
// logs must not be read. Folder names contain the uid of the pod, so no folder name is ever reused.

import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorText } from '../../errors.ts'
import type { Logger } from '../../telemetry/logger.ts'

const delayMs = 500

export class ExcludedPods {
  readonly #path: string
  readonly #logger: Logger
  readonly #folders: Set<string>
  #timer: NodeJS.Timeout | undefined

  constructor(path: string, logger: Logger) {
    this.#path = path
    this.#logger = logger
    this.#folders = new Set(read(path))
  }

  has(folder: string): boolean {
    return this.#folders.has(folder)
  }

  add(folder: string): void {
    if (this.#folders.has(folder)) return
    this.#folders.add(folder)
    this.#changed()
  }

  remove(folder: string): void {
    if (this.#folders.delete(folder)) this.#changed()
  }

  /** Forgets folders that no longer exist. */
  prune(isPresent: (folder: string) => boolean): void {
    for (const folder of this.#folders) if (!isPresent(folder)) this.remove(folder)
  }

  /** Writes pending changes at once. */
  async close(): Promise<void> {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    await this.#write()
  }

  #changed(): void {
    this.#timer ??= setTimeout(() => void this.#write(), delayMs)
  }

  async #write(): Promise<void> {
    this.#timer = undefined
    try {
      await mkdir(dirname(this.#path), { recursive: true })
      writeFileSync(`${this.#path}.new`, JSON.stringify([...this.#folders]), { mode: 0o600 })
      renameSync(`${this.#path}.new`, this.#path)
    } catch (error) {
      const fields = { file: this.#path, error: errorText(error) }
      this.#logger.warn(fields, 'Could not write the list of excluded pods; the next start looks them up again.')
    }
  }
}

/** The written state; empty if there is no complete file. */
function read(path: string): string[] {
  try {
    const folders: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return Array.isArray(folders) ? folders.filter((folder) => typeof folder === 'string') : []
  } catch {
    return [] // the first start, or a truncated file: the API reports them again
  }
}
