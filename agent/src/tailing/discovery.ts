// Finds files to tail: it walks folders, watches each with inotify, and walks them again periodically, which also covers file
// systems without inotify. It reports the files of each folder and each changed file. A folder that was entered stays entered
// until it is removed. inotify reports every write, and Node cannot filter these reports. If a folder has many writes, the reports
// cost more than the lines: discovery then marks it busy and stops watching it for a while, and the tailer polls its files.

import { type FSWatcher, readdirSync } from 'node:fs'
import { type TailFiles, tailFiles } from './files.ts'
import { isWorthPolling } from './polling.ts'

export interface DiscoveryRules {
  readonly roots: readonly string[]
  /** Whether to enter a folder. While the answer is no, discovery asks again at every walk of the parent. */
  enter(directory: string): boolean
  /** Whether the tailer wants a file. */
  accept(path: string): boolean
}

export interface DiscoveryHooks {
  /** Reports the wanted files in a folder; none when the folder is removed. `watched`: inotify reports changes. */
  listed(directory: string, files: readonly FoundFile[], watched: boolean): void
  /** A file was written or replaced. */
  changed(path: string): void
  /**
   * `true`: the folder has many writes, and `changed` no longer reports them. `false`: reports resume; files may have grown meanwhile.
   */
  busy(directory: string, busy: boolean): void
  /** A folder is no longer listed; an empty `listed` report precedes this call. */
  left?(directory: string): void
  /** A folder could not be watched or read. */
  failed(what: 'watching' | 'globbing', path: string, error: unknown): void
}

/** Controls the search for files. */
export interface Finder {
  sweep(): void
  beat(now: number): void
  /** Applies the rules again, to one folder and its subfolders or to all. */
  reconsider(directory?: string): void
  rescan(directory: string): void
  /** Walks a folder if its modification time has changed. */
  look(directory: string): void
  leave(directory: string): void
  close(): void
}

export interface FoundFile {
  readonly path: string
  /** inotify does not report changes of the target of a symbolic link. */
  readonly link: boolean
}

interface Folder {
  watcher: FSWatcher | undefined
  /** Modification time at the last walk. */
  time: number
  /** Number of wanted files at the last walk. */
  files: number
  /** Writes that inotify has reported since the last beat. */
  events: number
  /** When watching resumes; 0: the folder is not busy. */
  busyUntil: number
  /** Duration of the next busy period. */
  busyMs: number
  /** When a file last appeared or disappeared. */
  changedAt: number
  readonly children: Set<string>
}

const debounceMs = 25
/** Initial time for which a busy folder is not watched. It doubles while the folder stays busy. */
const minBusyMs = 10_000
const maxBusyMs = 60_000
const clockTickMs = 50
/** Interval between checks of a busy folder for new files. */
const lookMs = 250
/**
 * The shorter interval if files have appeared or disappeared recently, because the next ones may not exist for long.
 */
const shortLookMs = 25
const churnMs = 10_000

export class Discovery implements Finder {
  readonly #rules: DiscoveryRules
  readonly #hooks: DiscoveryHooks
  readonly #files: TailFiles
  readonly #folders = new Map<string, Folder>()
  readonly #dirty = new Set<string>()
  readonly #unwatchable = new Set<string>()
  readonly #busy = new Set<string>()
  #lookTimer: NodeJS.Timeout | undefined
  #looks = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(rules: DiscoveryRules, hooks: DiscoveryHooks, files: TailFiles = tailFiles) {
    this.#rules = rules
    this.#hooks = hooks
    this.#files = files
  }

  /** Walks all folders. */
  sweep(): void {
    for (const root of this.#rules.roots) {
      if (!this.#folders.has(root)) this.#enter(root, true)
    }
    this.#watchAgain()
    // Uses a copy, because walking adds folders, which have been walked already.
    for (const directory of [...this.#folders.keys()]) this.#walk(directory)
  }

  /** The system has a limit for watches: other programs may have released some since, or an administrator has raised it. */
  #watchAgain(): void {
    for (const [directory, folder] of this.#folders) {
      if (folder.watcher === undefined && folder.busyUntil === 0 && !this.#watch(directory, folder)) return
    }
  }

  /** Walks folders whose changes inotify may not have reported, and resumes watching at the end of a busy period. Call it every second. */
  beat(now: number): void {
    for (const root of this.#rules.roots) if (!this.#folders.has(root)) this.#enter(root, true)
    for (const [directory, folder] of this.#folders) {
      if (folder.busyUntil !== 0 && now >= folder.busyUntil) this.#calmDown(directory, folder)
      else if (folder.busyUntil === 0 && folder.events === 0) folder.busyMs = minBusyMs
      folder.events = 0
      // Some file systems accept watches but report nothing.
      this.look(directory)
    }
  }

  /**
   * Walks a folder if it has changed. This ends its busy period, so that inotify reports the next steps of a rotation at
   * once.
   */
  look(directory: string): void {
    const folder = this.#folders.get(directory)
    if (folder === undefined || this.#timeOf(directory) === folder.time) return
    folder.changedAt = Date.now()
    if (folder.busyUntil === 0) this.#walk(directory)
    else this.#calmDown(directory, folder)
  }

  #written(directory: string, folder: Folder): void {
    folder.events++
    if (folder.busyUntil !== 0 || !isWorthPolling(folder.events, folder.files)) return
    folder.watcher?.close()
    folder.watcher = undefined
    folder.busyUntil = Date.now() + folder.busyMs
    folder.busyMs = Math.min(maxBusyMs, folder.busyMs * 2)
    this.#busy.add(directory)
    this.#lookTimer ??= setInterval(() => this.#lookAtBusy(), shortLookMs)
    this.#hooks.busy(directory, true)
  }

  #lookAtBusy(): void {
    const isLook = ++this.#looks % (lookMs / shortLookMs) === 0
    const now = Date.now()
    for (const directory of this.#busy) {
      const folder = this.#folders.get(directory) as Folder
      if (isLook || now - folder.changedAt < churnMs) this.look(directory)
    }
  }

  #isNotBusy(directory: string): void {
    this.#busy.delete(directory)
    if (this.#busy.size > 0) return
    clearInterval(this.#lookTimer)
    this.#lookTimer = undefined
  }

  #calmDown(directory: string, folder: Folder): void {
    folder.busyUntil = 0
    folder.events = 0
    this.#isNotBusy(directory)
    this.#watch(directory, folder)
    // Finds changes that occurred without a watch.
    this.#walk(directory)
    this.#hooks.busy(directory, false)
  }

  /** Schedules a new decision about the folders below the roots. */
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
    clearInterval(this.#lookTimer)
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
    // Watches first and reads afterwards, so that no file can appear unnoticed in between.
    const folder: Folder = {
      watcher: undefined,
      time: Number.NaN,
      files: 0,
      events: 0,
      busyUntil: 0,
      busyMs: minBusyMs,
      changedAt: Number.NEGATIVE_INFINITY,
      children: new Set(),
    }
    if (root) {
      try {
        this.#files.statSync(directory)
      } catch {
        return // the next beat tries again
      }
    }
    this.#folders.set(directory, folder)
    this.#watch(directory, folder)
    this.#walk(directory)
  }

  /** False if the system allows no further watches. */
  #watch(directory: string, folder: Folder): boolean {
    try {
      const watcher = this.#files.watch(directory, { persistent: false }, (event, name) => {
        if (name === null) this.#mark(directory)
        else if (event === 'change') {
          this.#hooks.changed(join(directory, name))
          this.#written(directory, folder)
        } else {
          folder.changedAt = Date.now()
          this.#mark(directory)
          this.#hooks.changed(join(directory, name))
        }
      })
      watcher.on('error', (error) => {
        watcher.close()
        this.#hooks.failed('watching', directory, error)
        folder.watcher = undefined // every beat checks its modification time
        this.#mark(directory)
      })
      folder.watcher = watcher
      this.#unwatchable.delete(directory)
      return true
    } catch (error) {
      const code = codeOf(error)
      if (code !== 'ENOENT' && !this.#unwatchable.has(directory)) {
        this.#unwatchable.add(directory)
        this.#hooks.failed('watching', directory, error)
      }
      return watchLimits[code] === undefined
    }
  }

  #walk(directory: string): void {
    const folder = this.#folders.get(directory)
    if (folder === undefined) return
    // Read the time before the walk, so that the next check notices any later change. File system clocks tick every few
    // milliseconds, so a folder that has just changed may change again within the same tick, and is walked again.
    const time = this.#timeOf(directory)
    folder.time = Date.now() - time < clockTickMs ? Number.NaN : time
    let entries: import('node:fs').Dirent[]
    try {
      entries = readdirSync(directory, { withFileTypes: true })
    } catch (error) {
      const code = codeOf(error)
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
          isDirectory = this.#files.statSync(path).isDirectory()
        } catch {
          continue // a broken link, for now
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
    folder.files = files.length
    this.#hooks.listed(directory, files, folder.watcher !== undefined || folder.busyUntil !== 0)
  }

  /** Modification time of a folder, 0 if it is gone. */
  #timeOf(directory: string): number {
    return this.#files.statSync(directory, { throwIfNoEntry: false })?.mtimeMs ?? 0
  }

  #leave(directory: string): void {
    const folder = this.#folders.get(directory)
    if (folder === undefined) return
    this.#folders.delete(directory)
    this.#unwatchable.delete(directory)
    folder.watcher?.close()
    if (folder.busyUntil !== 0) {
      this.#isNotBusy(directory)
      this.#hooks.busy(directory, false)
    }
    for (const child of folder.children) this.#leave(child)
    this.#hooks.listed(directory, [], false)
    this.#hooks.left?.(directory)
  }
}

/** The limits of the system that an attempt to watch a folder can reach, by the code of the error. */
export const watchLimits: Readonly<Record<string, string>> = {
  ENOSPC: 'fs.inotify.max_user_watches',
  EMFILE: 'fs.inotify.max_user_instances',
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? ''

function join(directory: string, name: string): string {
  return directory === '/' ? `/${name}` : `${directory}/${name}`
}
