// Determines the folder of a sink's disk buffer. Ids may contain characters that file names do not allow, such as the slash
// in the id of a Pipeline's component.

import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Longest id used directly as a name; file systems allow 255 bytes. */
const maxNameLength = 200

/** The parent folder of all disk buffers. */
export function bufferRoot(dataDir: string): string {
  return join(dataDir, 'buffer', 'v2')
}

export function bufferFolder(dataDir: string, id: string): string {
  return join(bufferRoot(dataDir), folderName(id))
}

function folderName(id: string): string {
  const name = encodeURIComponent(id).replace(/^\.+/, (dots) => '%2E'.repeat(dots.length))
  if (name.length <= maxNameLength) return name
  return `${name.slice(0, maxNameLength - 34)}--${createHash('sha256').update(id).digest('hex').slice(0, 32)}`
}

/** Sorted names of the sub-folders of a folder; none if it does not exist. */
export function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .sort()
  } catch {
    return [] // no buffer was ever written there
  }
}
