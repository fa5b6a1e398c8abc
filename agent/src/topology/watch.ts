// Watches the files of the configuration. Directories are watched rather than files: editors and mounted volumes replace
// files and links, and a watch on the old one would hear nothing.

import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'

export interface WatchOptions {
  readonly method: 'recommended' | 'poll'
  readonly pollSecs: number
  /** How long there must be quiet before the change counts. */
  readonly quietMs?: number
}

/** Calls back, once for a burst of changes. Gives back what ends it. */
export function watchFiles(files: readonly string[], options: WatchOptions, changed: () => void): () => void {
  const quietMs = options.quietMs ?? 1000
  let timer: NodeJS.Timeout | undefined
  const folders = [...new Set(files.map(folderOf))]
  let seen = stamp(files, folders)
  // Other files change besides those of the configuration, such as the log of the agent itself.
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
        watcher.on('error', () => {}) // the folder is gone: the poll below finds its replacement
        watchers.push(watcher)
      } catch {
        // A file system that cannot be watched: the poll below does the work.
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

/** Differs when a file was written or replaced, or when one of the configuration's kind was added or removed beside it. */
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
