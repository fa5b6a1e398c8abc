// Where the disk buffer of a sink is. Ids hold characters that file names do not, such as the slash between the parts of the
// id of a Pipeline's component.

import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Longest name that is the id itself; file systems take 255 bytes. */
const longestName = 200

/** Where the folders of all disk buffers are. */
export function bufferRoot(dataDir: string): string {
  return join(dataDir, 'buffer', 'v2')
}

export function bufferFolder(dataDir: string, id: string): string {
  return join(bufferRoot(dataDir), folderName(id))
}

function folderName(id: string): string {
  const name = encodeURIComponent(id).replace(/^\.+/, (dots) => '%2E'.repeat(dots.length))
  if (name.length <= longestName) return name
  return `${name.slice(0, longestName - 34)}--${createHash('sha256').update(id).digest('hex').slice(0, 32)}`
}

/** Names of the folders in a folder, in order; none if it is not there. */
export function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .sort()
  } catch {
    return [] // nothing was ever written there
  }
}
