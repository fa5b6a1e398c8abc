// The file operations of a disk buffer, named as in `node:fs`. A test can fail, delay or record each of them. Those that return a
// promise run on the thread pool, so a slow disk delays nothing else.

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
  /** Bytes of a file. */
  sizeSync(file: number): number
  readSync(file: number, into: Buffer, offset: number, length: number, at: number): number
  writeSync(file: number, bytes: Buffer, offset: number, length: number, at: number): number
  ftruncateSync(file: number, size: number): void
  truncateSync(path: string, size: number): void
  renameSync(from: string, to: string): void
  unlinkSync(path: string): void
  /** Removes a file, or a folder with its content, if it is there. */
  rmSync(path: string, options: { readonly recursive?: boolean; readonly force: true }): void

  open(path: string, flags: string): Promise<number>
  read(file: number, into: Buffer, offset: number, length: number, at: number): Promise<number>
  /** Writes several pieces by one call; returns how many bytes the disk took. */
  writev(file: number, pieces: readonly Buffer[], at: number): Promise<number>
  fdatasync(file: number): Promise<void>
  fsync(file: number): Promise<void>
  unlink(path: string): Promise<void>
}

const readLater = promisify(read)

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
  read: async (file, into, offset, length, at) => (await readLater(file, into, offset, length, at)).bytesRead,
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
