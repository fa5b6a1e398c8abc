// Directories in `data_dir`, for what must be known after a restart, and the space that their file system has.

import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { errorText, PenstockError } from './errors.ts'

/** The file operations that make a directory. */
export interface DirectoryFiles {
  mkdirSync(path: string, options: { readonly mode: number }): void
  openSync(path: string, flags: string): number
  fsyncSync(file: number): void
  closeSync(file: number): void
}

export const directoryFiles: DirectoryFiles = { mkdirSync, openSync, fsyncSync, closeSync }

/** Makes a directory, and those above it, if it is not there: a loss of power takes it no more away than what is synced into it. */
export function makeDirectory(path: string, mode = 0o777, files: DirectoryFiles = directoryFiles): void {
  const whole = resolve(path)
  // Level by level: where a file system takes no folders, such as /proc, a recursive mkdir of Node does not return.
  const missing: string[] = []
  for (let at = whole; !existsSync(at); at = dirname(at)) missing.push(at)
  for (const level of missing.toReversed()) {
    try {
      files.mkdirSync(level, { mode })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error // another thread may have made it
    }
  }
  if (missing.length === 0 && !statSync(whole).isDirectory()) {
    throw Object.assign(new Error(`ENOTDIR: not a directory, mkdir '${whole}'`), { code: 'ENOTDIR' })
  }
  for (const made of missing) {
    const parent = files.openSync(dirname(made), 'r')
    try {
      files.fsyncSync(parent)
    } catch (error) {
      // Some file systems, above all of networks, cannot sync folders: what they promise of their names is up to them.
      if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    } finally {
      files.closeSync(parent)
    }
  }
}

export interface Space {
  /** Bytes of the whole file system. */
  readonly size: number
  /** Bytes that a user without special rights can still write. */
  readonly available: number
}

/** Returns the space of the file system of a path, or undefined if there is no such path or the file system does not report its size. */
export function spaceOf(path: string): Space | undefined {
  try {
    const { bsize, blocks, bavail } = statfsSync(path)
    return blocks === 0 ? undefined : { size: blocks * bsize, available: bavail * bsize }
  } catch {
    return undefined // nothing is there yet
  }
}

/**
 * Makes a component's own directory, if it is not there.
 * @returns its path
 * @throws PEN_DATA_DIR where it cannot be made
 */
export function componentDirectory(dataDir: string, id: string): string {
  const directory = join(dataDir, id)
  try {
    makeDirectory(directory)
    accessSync(directory, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new PenstockError(
      'PEN_DATA_DIR',
      `Could not create subdirectory "${id}" inside of data dir "${dataDir}": ${errorText(error)}. Make the directory writable, or set \`data_dir\` to one that is.`,
      { cause: error },
    )
  }
  return directory
}
