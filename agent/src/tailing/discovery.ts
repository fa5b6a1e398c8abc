// Finds files to tail: walks folders, watches each with inotify, and walks again at a slow beat, which also covers file
// systems without inotify. Says of each folder which files it holds now, and of each file that it has changed.
// A folder that was entered stays entered until it is gone.
// inotify speaks once for every write. Where there are many, that costs more than the lines: such a folder is polled for a while.

import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'

export interface DiscoveryRules {
  readonly roots: readonly string[]
  /** Whether a folder is looked into. Asked again at every walk of its parent as long as the answer is no. */
  enter(directory: string): boolean
  /** Whether a file is wanted. */
  accept(path: string): boolean
}

export interface DiscoveryHooks {
  /** The wanted files that a folder holds now; none when the folder is gone. `watched`: inotify tells of changes. */
  listed(directory: string, files: readonly FoundFile[], watched: boolean): void
  /** Something was written to a file, or it was replaced. */
  changed(path: string): void
  /** A busy folder has its turn: its files may have grown. */
  polled(directory: string): void
  /** A folder is looked into no more; `listed` has told of no files before. */
  left?(directory: string): void
  /** A folder could not be watched or read. */
  failed(what: 'watching' | 'globbing', path: string, error: unknown): void
}

/** What a tailer asks of whoever finds its files. */
export interface Finder {
  sweep(): void
  beat(now: number): void
  /** Asks the rules again: about one folder and what is below it, or about all. */
  reconsider(directory?: string): void
  rescan(directory: string): void
  leave(directory: string): void
  close(): void
}

export interface FoundFile {
  readonly path: string
  /** Changes of what a symbolic link leads to are not told by inotify. */
  readonly link: boolean
}

interface Folder {
  watcher: FSWatcher | undefined
  /** Modification time when it was walked last. */
  time: number
  /** Events since the last beat. */
  events: number
  /** Until then it is polled; 0: it is not busy. */
  busyUntil: number
  readonly children: Set<string>
}

const debounceMs = 25
/** So many events within a beat make a folder busy. */
const busyEvents = 50
const busyMs = 10_000
const pollMs = 25
const clockTickMs = 50

export class Discovery implements Finder {
  readonly #rules: DiscoveryRules
  readonly #hooks: DiscoveryHooks
  readonly #folders = new Map<string, Folder>()
  readonly #dirty = new Set<string>()
  readonly #unwatchable = new Set<string>()
  readonly #busy = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #pollTimer: NodeJS.Timeout | undefined
  #closed = false

  constructor(rules: DiscoveryRules, hooks: DiscoveryHooks) {
    this.#rules = rules
    this.#hooks = hooks
  }

  /** Walks everything. */
  sweep(): void {
    for (const root of this.#rules.roots) {
      if (!this.#folders.has(root)) this.#enter(root, true)
    }
    // A copy: walking adds folders, and those have been walked.
    for (const directory of [...this.#folders.keys()]) this.#walk(directory)
  }

  /** Walks what may have changed without a word of inotify, and finds out what is busy. To be called every second. */
  beat(now: number): void {
    for (const root of this.#rules.roots) if (!this.#folders.has(root)) this.#enter(root, true)
    for (const [directory, folder] of this.#folders) {
      if (folder.busyUntil === 0 && folder.events > busyEvents) this.#becomeBusy(directory, folder, now)
      else if (folder.busyUntil !== 0 && now >= folder.busyUntil) this.#calmDown(directory, folder)
      folder.events = 0
      // Some file systems can be watched but tell nothing.
      if (timeOf(directory) !== folder.time) this.#walk(directory)
    }
  }

  #becomeBusy(directory: string, folder: Folder, now: number): void {
    folder.watcher?.close()
    folder.watcher = undefined
    folder.busyUntil = now + busyMs
    this.#busy.add(directory)
    this.#pollTimer ??= setInterval(() => this.#poll(), pollMs)
  }

  #calmDown(directory: string, folder: Folder): void {
    folder.busyUntil = 0
    this.#busy.delete(directory)
    if (this.#busy.size === 0) {
      clearInterval(this.#pollTimer)
      this.#pollTimer = undefined
    }
    this.#watch(directory, folder)
    // What happened while nobody watched.
    this.#walk(directory)
    this.#hooks.polled(directory)
  }

  #poll(): void {
    for (const directory of this.#busy) {
      if (timeOf(directory) !== this.#folders.get(directory)?.time) this.#walk(directory)
      this.#hooks.polled(directory)
    }
  }

  /** Asks again which folders below the roots shall be entered, soon. */
  reconsider(): void {
    for (const root of this.#rules.roots) this.#mark(root)
  }

  /** Walks one folder. */
  rescan(directory: string): void {
    this.#walk(directory)
  }

  /** Leaves a folder; it is entered again when the rules allow it. */
  leave(directory: string): void {
    this.#leave(directory)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    clearInterval(this.#pollTimer)
    for (const folder of this.#folders.values()) folder.watcher?.close()
    this.#folders.clear()
  }

  #mark(directory: string): void {
    if (this.#closed) return
    this.#dirty.add(directory)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const dirty = [...this.#dirty]
      this.#dirty.clear()
      for (const path of dirty) if (this.#folders.has(path)) this.#walk(path)
    }, debounceMs)
  }

  #enter(directory: string, root = false): void {
    // Watched first, read after: nothing can appear in between unseen.
    const folder: Folder = { watcher: undefined, time: Number.NaN, events: 0, busyUntil: 0, children: new Set() }
    if (root) {
      try {
        statSync(directory)
      } catch {
        return // looked for again at the next beat
      }
    }
    this.#folders.set(directory, folder)
    this.#watch(directory, folder)
    this.#walk(directory)
  }

  #watch(directory: string, folder: Folder): void {
    try {
      const watcher = watch(directory, { persistent: false }, (event, name) => {
        folder.events++
        if (name === null) this.#mark(directory)
        else if (event === 'change') this.#hooks.changed(join(directory, name))
        else {
          this.#mark(directory)
          this.#hooks.changed(join(directory, name))
        }
      })
      watcher.on('error', (error) => {
        watcher.close()
        this.#hooks.failed('watching', directory, error)
        folder.watcher = undefined // its time is looked at with every beat
        this.#mark(directory)
      })
      folder.watcher = watcher
      this.#unwatchable.delete(directory)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || this.#unwatchable.has(directory)) return
      this.#unwatchable.add(directory)
      this.#hooks.failed('watching', directory, error)
    }
  }

  #walk(directory: string): void {
    const folder = this.#folders.get(directory)
    if (folder === undefined) return
    // The time first: a change after it is seen at the next look. Clocks of file systems tick every few milliseconds: what
    // has changed just now may change again at the same time, and is walked again.
    const time = timeOf(directory)
    folder.time = Date.now() - time < clockTickMs ? Number.NaN : time
    let entries: import('node:fs').Dirent[]
    try {
      entries = readdirSync(directory, { withFileTypes: true })
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      if (code !== 'ENOENT' && code !== 'ENOTDIR') {
        this.#hooks.failed('globbing', directory, error)
        return
      }
      this.#leave(directory)
      return
    }
    const files: FoundFile[] = []
    const present = new Set<string>()
    for (const entry of entries) {
      const path = join(directory, entry.name)
      let isDirectory = entry.isDirectory()
      const link = entry.isSymbolicLink()
      if (link) {
        try {
          isDirectory = statSync(path).isDirectory()
        } catch {
          continue // leads nowhere, for now
        }
      } else if (!isDirectory && !entry.isFile()) continue
      if (isDirectory) {
        present.add(path)
        if (!this.#folders.has(path) && this.#rules.enter(path)) {
          folder.children.add(path)
          this.#enter(path)
        }
      } else if (this.#rules.accept(path)) files.push({ path, link })
    }
    for (const child of folder.children) {
      if (!present.has(child)) {
        folder.children.delete(child)
        this.#leave(child)
      }
    }
    this.#hooks.listed(directory, files, folder.watcher !== undefined || folder.busyUntil !== 0)
  }

  #leave(directory: string): void {
    const folder = this.#folders.get(directory)
    if (folder === undefined) return
    this.#folders.delete(directory)
    this.#unwatchable.delete(directory)
    this.#busy.delete(directory)
    folder.watcher?.close()
    for (const child of folder.children) this.#leave(child)
    this.#hooks.listed(directory, [], false)
    this.#hooks.left?.(directory)
  }
}

/** Modification time of a folder, 0 if it is gone. */
function timeOf(directory: string): number {
  return statSync(directory, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function join(directory: string, name: string): string {
  return directory === '/' ? `/${name}` : `${directory}/${name}`
}
