// A component's own directory in `data_dir`, for what it must know after a restart.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { errorText, PenstockError } from './errors.ts'

/**
 * Makes the directory, if it is not there.
 * @returns its path
 * @throws PEN_DATA_DIR where it cannot be made
 */
export function componentDirectory(dataDir: string, id: string): string {
  const directory = join(dataDir, id)
  try {
    mkdirSync(directory, { recursive: true })
  } catch (error) {
    throw new PenstockError(
      'PEN_DATA_DIR',
      `Could not create subdirectory "${id}" inside of data dir "${dataDir}": ${errorText(error)}. Make the directory writable, or set \`data_dir\` to one that is.`,
      { cause: error },
    )
  }
  return directory
}
