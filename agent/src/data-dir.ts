// Directories in `data_dir`, for what must be known after a restart.

import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { errorText, PenstockError } from './errors.ts'

/** Makes a directory, and those above it, if it is not there: a loss of power takes it no more away than what is synced into it. */
export function makeDirectory(path: string, mode = 0o777): void {
  const whole = resolve(path)
  const first = mkdirSync(whole, { recursive: true, mode })
  if (first === undefined) return
  for (let made = whole; made.length >= first.length; made = dirname(made)) {
    const parent = openSync(dirname(made), 'r')
    try {
      fsyncSync(parent)
    } catch (error) {
      // Some file systems, above all of networks, cannot sync folders: what they promise of their names is up to them.
      if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    } finally {
      closeSync(parent)
    }
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
  } catch (error) {
    throw new PenstockError(
      'PEN_DATA_DIR',
      `Could not create subdirectory "${id}" inside of data dir "${dataDir}": ${errorText(error)}. Make the directory writable, or set \`data_dir\` to one that is.`,
      { cause: error },
    )
  }
  return directory
}
