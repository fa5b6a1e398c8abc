// The file operations that a tailer repeats, named as in `node:fs`. A test can count, fail or delay them. Opening, closing and removing
// happen once for each file, and a test sees them in the folder.

import { readSync, statSync } from 'node:fs'

export interface TailFiles {
  readonly readSync: (file: number, into: Buffer, offset: number, length: number, at: number) => number
  readonly statSync: typeof statSync
}

export const tailFiles: TailFiles = { readSync, statSync }
