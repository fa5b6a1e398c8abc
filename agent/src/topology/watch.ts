// Watches the files of the configuration. It watches directories rather than files: editors and mounted volumes replace
// files and links, and a watch on the old file would report nothing.

import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'

export interface WatchOptions {
  readonly method: 'recommended' | 'poll'
  readonly pollSecs: number
  /** How long the directory must be quiet before a change is reported. */
  readonly quietMs?: number
}

/** Calls back once for a burst of changes. Returns a function that stops watching. */
export function watchFiles(files: readonly string[], options: WatchOptions, changed: () => void): () => void {
  const quietMs = options.quietMs ?? 1000
  let timer: NodeJS.Timeout | undefined
  const folders = [...new Set(files.map(folderOf))]
  let seen = stamp(files, folders)
  // The directory may contain other files that change, such as the log of the agent itself.
  const notice = () => {
    const now = stamp(files, folders)
    if (now === seen) return
    seen = now
    clearTimeout(timer)
    timer = setTimeout(changed, quietMs).unref()
  }
  const watchers: FSWatcher[] = []
  if (options.method === 'recommended') {
    for (const folder of folders) {
      try {
        const watcher = watch(folder, { persistent: false }, notice)
        watcher.on('error', () => {}) // the folder was removed: the poll below finds its replacement
        watchers.push(watcher)
      } catch {
        // If the file system does not support watches, the poll below detects changes.
      }
    }
  }
  const poll = setInterval(notice, options.pollSecs * 1000).unref()
  return () => {
    clearTimeout(timer)
    clearInterval(poll)
    for (const watcher of watchers) watcher.close()
  }
}

function folderOf(path: string): string {
  try {
    return statSync(path).isDirectory() ? path : dirname(path)
  } catch {
    return dirname(path)
  }
}

/**
 * A text that changes when a file is written or replaced, or when a file with a configuration's extension appears or
 * disappears beside it.
 */
function stamp(files: readonly string[], folders: readonly string[]): string {
  return [...files.map(fileStamp), ...folders.map(folderStamp)].join('\n')
}

function fileStamp(file: string): string {
  try {
    const found = statSync(file)
    return found.isDirectory() ? '' : `${found.ino} ${found.size} ${found.mtimeMs}`
  } catch {
    return '-'
  }
}

function folderStamp(folder: string): string {
  try {
    return readdirSync(folder)
      .filter((name) => !name.startsWith('.') && /\.(?:toml|ya?ml|json)$/.test(name))
      .sort()
      .join('/')
  } catch {
    return '-'
  }
}
