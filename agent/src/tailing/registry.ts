// The files that a tailer knows. The registry identifies a file by its fingerprint and reads it through its descriptor, so renames and
// removals lose no lines. It classifies each found file: new, known under another name, a copy of a known one, or too short. It reads
// no lines.

import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Checkpoints } from './checkpoint.ts'
import type { FoundFile } from './discovery.ts'
import { type TailFiles, tailFiles } from './files.ts'
import { type Fingerprint, Fingerprinter } from './fingerprint.ts'
import { FileProgress, type ProgressState } from './progress.ts'
import type { TailReports } from './reports.ts'
import type { SharedReads } from './shared-reads.ts'
import { byAge, directoryOf, inodeOf, TailedFile, type TailOptions } from './tailed-file.ts'

interface RegistryHooks<State> {
  /** Reading of a file starts. */
  opened(file: TailedFile<State>): void
  /** A file may have new lines, or was removed. */
  news(file: TailedFile<State>): void
  /** A file is about to be closed. */
  closing(file: TailedFile<State>): void
  /** A link has a new target: its folder must be walked again. */
  rescan(directory: string): void
}

interface Context {
  readonly events: ComponentEvents
  readonly logger: Logger
  readonly reports: TailReports
  readonly checkpoints: Checkpoints
  readonly progressState: ProgressState
  readonly reads: SharedReads | undefined
}

export class FileRegistry<State> {
  readonly #options: TailOptions
  readonly #files: TailFiles
  readonly #hooks: RegistryHooks<State>
  readonly #events: ComponentEvents
  readonly #logger: Logger
  readonly #reports: TailReports
  readonly #checkpoints: Checkpoints
  readonly #progressState: ProgressState
  readonly #reads: SharedReads | undefined
  readonly #fingerprinter: Fingerprinter

  readonly #byInode = new Map<string, TailedFile<State>>()
  readonly #byPath = new Map<string, TailedFile<State>>()
  readonly #byDirectory = new Map<string, Set<TailedFile<State>>>()
  readonly #byFingerprint = new Map<Fingerprint, TailedFile<State>>()
  /** Files that are too short for a fingerprint or cannot be opened, with the size at the last attempt; the next to retry first. */
  readonly #waiting = new Map<string, { size: number; unwatched: boolean }>()
  readonly #waitingIn = new FolderIndex()
  /** Duplicate files of a fingerprint, by inode, with size and time at detection. */
  readonly #doubles = new Map<string, { path: string; stamp: string; fingerprint: Fingerprint }>()
  readonly #doublesIn = new FolderIndex()
  #started = false
  /** Files of the replaced tailer. */
  #inherited: ReadonlyMap<Fingerprint, FileProgress> | undefined

  constructor(options: TailOptions, hooks: RegistryHooks<State>, context: Context) {
    this.#options = options
    this.#files = options.files ?? tailFiles
    this.#hooks = hooks
    this.#events = context.events
    this.#logger = context.logger
    this.#reports = context.reports
    this.#checkpoints = context.checkpoints
    this.#progressState = context.progressState
    this.#reads = context.reads
    this.#fingerprinter = new Fingerprinter(options.fingerprint, this.#files)
  }

  /** The open files. */
  files(): IterableIterator<TailedFile<State>> {
    return this.#byInode.values()
  }

  filesIn(directory: string): Iterable<TailedFile<State>> {
    return this.#byDirectory.get(directory) ?? []
  }

  /** The open files, by folder. */
  folders(): Iterable<ReadonlySet<TailedFile<State>>> {
    return this.#byDirectory.values()
  }

  /** Continues from the positions of the replaced tailer. */
  inherit(files: ReadonlyMap<Fingerprint, FileProgress> | undefined): void {
    this.#inherited = files
  }

  /** From now on, every newly found file is read from its beginning. */
  start(): void {
    this.#started = true
  }

  /** A file was written or replaced. */
  changed(path: string): void {
    const file = this.#byPath.get(path)
    if (file !== undefined) this.#hooks.news(file)
    else if (this.#waiting.has(path)) this.#retry(path)
  }

  /** Retries the files that were too short; if there are many, some of them at each call. */
  retryWaiting(): void {
    for (const path of [...this.#waiting.keys().take(maxRetries)]) {
      const waiting = this.#waiting.get(path)
      if (waiting === undefined) continue
      this.#waiting.delete(path)
      this.#waiting.set(path, waiting)
      this.#retry(path)
    }
  }

  /** Whether a checkpoint is still needed. */
  isWanted(fingerprint: Fingerprint): boolean {
    if (this.#byFingerprint.has(fingerprint)) return true
    for (const double of this.#doubles.values()) if (double.fingerprint === fingerprint) return true
    return false
  }

  /** Compares the wanted files of a folder with the known ones: opens new files, and records moved and removed ones. */
  listed(directory: string, files: readonly FoundFile[], watched: boolean): void {
    const present = new Set<TailedFile<State>>()
    const paths = new Set<string>()
    const unknown: { path: string; unwatched: boolean }[] = []
    for (const { path, link } of files) {
      paths.add(path)
      let stats: Stats
      try {
        stats = this.#files.statSync(path)
      } catch {
        continue // removed since the folder was listed
      }
      const file = this.#byInode.get(inodeOf(stats))
      const unwatched = link || !watched
      if (file === undefined) {
        unknown.push({ path, unwatched })
        continue
      }
      present.add(file)
      file.goneSince = undefined
      file.unwatched = unwatched
      if (file.path !== path && !this.#pathLeadsTo(file.path, file.inode)) this.#rename(file, path)
    }
    const now = Date.now()
    for (const file of this.#byDirectory.get(directory) ?? []) {
      if (present.has(file) || file.goneSince !== undefined) continue
      file.goneSince = now
      this.#hooks.news(file)
    }
    for (const path of this.#waitingIn.keysIn(directory)) if (!paths.has(path)) this.#forget(path)
    for (const inode of this.#doublesIn.keysIn(directory)) {
      if (!paths.has(this.#doubles.get(inode)?.path ?? '')) this.#forgetDouble(inode)
    }
    // The oldest first, so a restart follows the order in which files were written.
    const dated = unknown.map((found) => ({ ...found, created: unknown.length > 1 ? this.#created(found.path) : 0 }))
    for (const { path, unwatched } of dated.sort(byAge)) this.#open(path, unwatched)
    this.#events.gauge('open_files', this.#byInode.size)
  }

  /** inotify does not report a new target of a symbolic link. */
  checkPath(file: TailedFile<State>): void {
    if (file.unwatched && !this.#pathLeadsTo(file.path, file.inode)) this.#hooks.rescan(file.directory)
  }

  /** Checks whether the file still begins with the same lines, because it may have been truncated and refilled. */
  verify(file: TailedFile<State>): void {
    if (file.closed || file.gzip || this.#options.fingerprint.strategy !== 'checksum') return
    try {
      const stats = fstatSync(file.descriptor)
      if (stats.mtimeMs === file.checkedTime) return
      file.checkedTime = stats.mtimeMs
      const identity = this.#fingerprinter.identify(file.descriptor, this.#options.stopAtEnd)
      if (identity?.fingerprint !== file.progress.fingerprint) this.restart(file)
    } catch (error) {
      this.#reports.unreadable(file.path, error)
    }
  }

  /** Reads a file from its beginning after a truncation. */
  restart(file: TailedFile<State>): void {
    this.#logger.info({ file: file.path }, 'File was truncated; reading it from its beginning.')
    const { path, unwatched } = file
    file.share?.changed()
    this.close(file)
    file.progress.close()
    this.#checkpoints.delete(file.progress.fingerprint)
    this.#open(path, unwatched)
  }

  /** Forgets a file and closes its descriptor. */
  close(file: TailedFile<State>): void {
    if (file.closed) return
    this.#hooks.closing(file)
    file.closed = true
    this.#byInode.delete(file.inode)
    if (this.#byPath.get(file.path) === file) this.#byPath.delete(file.path)
    if (this.#byFingerprint.get(file.progress.fingerprint) === file) {
      this.#byFingerprint.delete(file.progress.fingerprint)
    }
    const siblings = this.#byDirectory.get(file.directory)
    siblings?.delete(file)
    if (siblings?.size === 0) this.#byDirectory.delete(file.directory)
    this.#closeDescriptor(file)
    this.#events.count('files_unwatched_total', 1, this.#reports.tags(file))
    this.#events.gauge('open_files', this.#byInode.size)
  }

  /** Closes all descriptors; the files stay known. */
  closeDescriptors(): void {
    for (const file of this.#byInode.values()) this.#closeDescriptor(file)
  }

  #pathLeadsTo(path: string, inode: string): boolean {
    try {
      return inodeOf(this.#files.statSync(path)) === inode
    } catch {
      return false
    }
  }

  /** Time of creation, 0 if the file is gone. */
  #created(path: string): number {
    try {
      const stats = this.#files.statSync(path)
      return stats.birthtimeMs || stats.ctimeMs
    } catch {
      return 0
    }
  }

  #rename(file: TailedFile<State>, path: string): void {
    if (this.#byPath.get(file.path) === file) this.#byPath.delete(file.path)
    this.#byDirectory.get(file.directory)?.delete(file)
    file.path = path
    file.byteTags = undefined
    file.directory = directoryOf(path)
    this.#index(file)
  }

  #index(file: TailedFile<State>): void {
    this.#byPath.set(file.path, file)
    const siblings = this.#byDirectory.get(file.directory)
    if (siblings === undefined) this.#byDirectory.set(file.directory, new Set([file]))
    else siblings.add(file)
  }

  #wait(path: string, size: number, unwatched: boolean): void {
    this.#waiting.set(path, { size, unwatched })
    this.#waitingIn.add(directoryOf(path), path)
  }

  #forget(path: string): void {
    this.#waiting.delete(path)
    this.#waitingIn.delete(directoryOf(path), path)
    this.#reports.forget(path)
  }

  #isDouble(path: string, stats: Stats, fingerprint: Fingerprint, stamp: string): void {
    const inode = inodeOf(stats)
    this.#forgetDouble(inode)
    this.#doubles.set(inode, { path, stamp, fingerprint })
    this.#doublesIn.add(directoryOf(path), inode)
  }

  #forgetDouble(inode: string): void {
    const double = this.#doubles.get(inode)
    if (double === undefined) return
    this.#doubles.delete(inode)
    this.#doublesIn.delete(directoryOf(double.path), inode)
  }

  /** Retries a file that was too short. */
  #retry(path: string): void {
    const waiting = this.#waiting.get(path)
    if (waiting === undefined) return
    try {
      if (this.#files.statSync(path).size === waiting.size) return
    } catch {
      return // removed; its folder reports this
    }
    this.#open(path, waiting.unwatched)
  }

  #open(path: string, unwatched: boolean): void {
    let descriptor: number
    try {
      // Opening a pipe behind a link would block the whole process until someone writes to it.
      descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      this.#wait(path, -1, unwatched)
      this.#reports.unreadable(path, error)
      return
    }
    let kept = false
    try {
      if (this.#options.confinement?.holds(descriptor) === false) {
        this.#reports.outside(path)
        return
      }
      kept = this.#admit(path, descriptor, unwatched)
    } catch (error) {
      this.#wait(path, -1, unwatched)
      this.#reports.unreadable(path, error)
    } finally {
      if (!kept) closeSync(descriptor)
    }
  }

  /** Classifies an open file: new, known under another name, a duplicate, or too short. True if reading starts. */
  #admit(path: string, descriptor: number, unwatched: boolean): boolean {
    const options = this.#options
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) return false
    const stamp = `${stats.size} ${stats.mtimeMs}`
    if (this.#doubles.get(inodeOf(stats))?.stamp === stamp) return false
    const identity = this.#fingerprinter.identify(descriptor, options.stopAtEnd)
    if (identity === undefined) {
      this.#wait(path, stats.size, unwatched)
      this.#reports.tooShort(path)
      return false
    }
    this.#forget(path)
    const { fingerprint, gzip } = identity

    const other = this.#byFingerprint.get(fingerprint)
    if (other !== undefined) {
      if (
        !gzip &&
        !other.gzip &&
        stats.size >= other.offset &&
        (other.goneSince !== undefined || newer(stats, other))
      ) {
        this.#switch(other, path, descriptor, stats, unwatched)
        return true
      }
      if (!gzip && other.goneSince === undefined) {
        this.#reports.double(path, other.path)
      }
      this.#isDouble(path, stats, fingerprint, stamp)
      return false
    }

    const inherited = this.#inherited?.get(fingerprint)
    const reach = inherited?.reach
    // Lines that a predecessor passed on may still be undelivered; they are not read again.
    const continues = inherited !== undefined && reach !== undefined && (gzip || reach <= stats.size)
    const known = continues ? reach : this.#checkpoints.get(fingerprint)
    let offset = 0
    if (known !== undefined) offset = !gzip && known > stats.size ? 0 : known
    else if (options.ignoreOlderMs !== undefined && Date.now() - stats.mtimeMs > options.ignoreOlderMs)
      offset = stats.size
    else if (!this.#started && options.readFrom === 'end') offset = stats.size
    if (gzip && known === undefined && offset > 0) {
      this.#isDouble(path, stats, fingerprint, stamp)
      return false
    }
    if (continues) inherited.passTo(this.#checkpoints, this.#progressState)
    const progress = continues
      ? inherited
      : new FileProgress(fingerprint, offset, this.#checkpoints, this.#progressState)
    const file = new TailedFile<State>({ path, descriptor, stats, gzip, offset, progress, unwatched })
    this.#share(file)
    this.#events.count(known === undefined ? 'files_added_total' : 'files_resumed_total', 1, this.#reports.tags(file))
    this.#logger.debug({ file: path, position: offset }, known === undefined ? 'Found a file.' : 'Resuming a file.')
    this.#byInode.set(file.inode, file)
    this.#byFingerprint.set(fingerprint, file)
    this.#index(file)
    this.#hooks.opened(file)
    return true
  }

  /** Continues in a copy of the file. */
  #switch(file: TailedFile<State>, path: string, descriptor: number, stats: Stats, unwatched: boolean): void {
    this.#byInode.delete(file.inode)
    this.#closeDescriptor(file)
    file.descriptor = descriptor
    file.inode = inodeOf(stats)
    this.#share(file)
    file.goneSince = undefined
    file.unwatched = unwatched
    this.#byInode.set(file.inode, file)
    if (file.path !== path) this.#rename(file, path)
    this.#hooks.news(file)
  }

  /** The inode is a unique key while the file is open. */
  #share(file: TailedFile<State>): void {
    if (file.gzip) return
    file.share = this.#reads?.open(`${file.inode} ${file.progress.fingerprint} ${this.#options.maxLineBytes}`, file)
  }

  #closeDescriptor(file: TailedFile<State>): void {
    file.share?.close()
    file.share = undefined
    try {
      closeSync(file.descriptor)
    } catch {
      // A failed gzip reader has already closed it and holds nothing.
    }
  }
}

/**
 * Number of files that are retried at a time. A container may create more files than the agent can check every second.
 */
const maxRetries = 1000

/** Keys of files, by folder. */
class FolderIndex {
  readonly #folders = new Map<string, Set<string>>()

  add(directory: string, key: string): void {
    const keys = this.#folders.get(directory)
    if (keys === undefined) this.#folders.set(directory, new Set([key]))
    else keys.add(key)
  }

  delete(directory: string, key: string): void {
    const keys = this.#folders.get(directory)
    keys?.delete(key)
    if (keys?.size === 0) this.#folders.delete(directory)
  }

  /** The keys of a folder, which may change meanwhile. */
  keysIn(directory: string): readonly string[] {
    return [...(this.#folders.get(directory) ?? [])]
  }
}

function newer(stats: Stats, file: { readonly descriptor: number }): boolean {
  return stats.mtimeMs > fstatSync(file.descriptor).mtimeMs
}
