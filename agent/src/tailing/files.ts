// The file operations that a tailer repeats, named as in `node:fs`. A test can count, fail or delay them. Opening, closing and removing
// happen once for each file, and a test sees them in the folder.

import { type FSWatcher, readSync, statSync, type WatchOptionsWithStringEncoding, watch } from 'node:fs'

export interface TailFiles {
  readonly readSync: (file: number, into: Buffer, offset: number, length: number, at: number) => number
  readonly statSync: typeof statSync
  readonly watch: (
    path: string,
    options: WatchOptionsWithStringEncoding,
    changed: (event: string, name: string | null) => void,
  ) => FSWatcher
}

export const tailFiles: TailFiles = { readSync, statSync, watch }
