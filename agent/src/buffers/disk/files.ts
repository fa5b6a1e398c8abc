// The file operations of a disk buffer, named as in `node:fs`, so that a test can fail, delay or record each of them. Operations
// that return a promise run on the thread pool, so a slow disk does not block other work.

import {
  closeSync,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  open,
  openSync,
  read,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  truncateSync,
  unlink,
  unlinkSync,
  writeSync,
  writev,
} from 'node:fs'
import { promisify } from 'node:util'
import { type DirectoryFiles, directoryFiles } from '../../data-dir.ts'

export interface DiskFiles extends DirectoryFiles {
  readdirSync(folder: string): string[]
  openSync(path: string, flags: string | number, mode?: number): number
  closeSync(file: number): void
  /** Size of a file in bytes. */
  sizeSync(file: number): number
  readSync(file: number, into: Buffer, offset: number, length: number, at: number): number
  writeSync(file: number, bytes: Buffer, offset: number, length: number, at: number): number
  ftruncateSync(file: number, size: number): void
  truncateSync(path: string, size: number): void
  renameSync(from: string, to: string): void
  unlinkSync(path: string): void
  /** Removes a file, or a folder with its content, if it exists. */
  rmSync(path: string, options: { readonly recursive?: boolean; readonly force: true }): void

  open(path: string, flags: string): Promise<number>
  read(file: number, into: Buffer, offset: number, length: number, at: number): Promise<number>
  /** Writes several pieces in one call; returns the number of bytes written. */
  writev(file: number, pieces: readonly Buffer[], at: number): Promise<number>
  fdatasync(file: number): Promise<void>
  fsync(file: number): Promise<void>
  unlink(path: string): Promise<void>
}

const readAsync = promisify(read)

export const diskFiles: DiskFiles = {
  ...directoryFiles,
  readdirSync: (folder) => readdirSync(folder),
  openSync,
  closeSync,
  sizeSync: (file) => fstatSync(file).size,
  readSync,
  writeSync,
  ftruncateSync,
  truncateSync,
  renameSync,
  unlinkSync,
  rmSync,

  open: promisify(open),
  read: async (file, into, offset, length, at) => (await readAsync(file, into, offset, length, at)).bytesRead,
  writev: (file, pieces, at) =>
    new Promise((resolve, reject) => {
      writev(file, pieces, at, (error, written) => {
        if (error === null) resolve(written)
        else reject(error)
      })
    }),
  fdatasync: promisify(fdatasync),
  fsync: promisify(fsync),
  unlink: promisify(unlink),
}
