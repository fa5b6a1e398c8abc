// Counts the file operations of tailers on the real file system.

import type { statSync } from 'node:fs'
import { type TailFiles, tailFiles } from '../tailing/files.ts'

export class CountedFiles implements TailFiles {
  reads = 0
  bytes = 0
  /** Number of `stat` calls by path. */
  readonly stats = new Map<string, number>()

  readonly readSync: TailFiles['readSync'] = (...args) => {
    const length = tailFiles.readSync(...args)
    this.reads++
    this.bytes += length
    return length
  }

  readonly statSync = ((path: string, options?: object) => {
    this.stats.set(path, (this.stats.get(path) ?? 0) + 1)
    return tailFiles.statSync(path, options)
  }) as typeof statSync

  /** The error of the next attempts to watch a folder; undefined: none. */
  watchError: NodeJS.ErrnoException | undefined
  /** Attempts to watch a folder. */
  watches = 0

  readonly watch: TailFiles['watch'] = (...args) => {
    this.watches++
    if (this.watchError !== undefined) throw this.watchError
    return tailFiles.watch(...args)
  }

  /** Resets all counts. */
  reset(): void {
    this.reads = 0
    this.bytes = 0
    this.watches = 0
    this.stats.clear()
  }
}
