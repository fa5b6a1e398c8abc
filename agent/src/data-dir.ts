// Creates directories in `data_dir` for state that must survive a restart, and measures the space of their file system.

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

/** The file operations that create a directory. */
export interface DirectoryFiles {
  mkdirSync(path: string, options: { readonly mode: number }): void
  openSync(path: string, flags: string): number
  fsyncSync(file: number): void
  closeSync(file: number): void
}

export const directoryFiles: DirectoryFiles = { mkdirSync, openSync, fsyncSync, closeSync }

/**
 * Creates a missing directory and its missing parents. After a power failure, the directory still exists if any synced file in it
 * does.
 */
export function makeDirectory(path: string, mode = 0o777, files: DirectoryFiles = directoryFiles): void {
  const whole = resolve(path)
  // Create the levels one by one, because Node's recursive mkdir never returns on a file system without folders, such
  // as /proc.
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
      // Some file systems, most of them on networks, cannot sync folders, so nothing more can be guaranteed there.
      if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    } finally {
      files.closeSync(parent)
    }
  }
}

export interface Space {
  /** Size of the whole file system in bytes. */
  readonly size: number
  /** Number of bytes that an unprivileged user can still write. */
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

/** Creates a component's own directory if it is missing. @returns its path @throws PEN_DATA_DIR if this fails */
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
