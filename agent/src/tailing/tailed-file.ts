// One file that is tailed, and what the engine and its users agree on: options, and hooks that hear of files and lines.

import { fstatSync, type Stats } from 'node:fs'
import type { Turns } from '../component.ts'
import type { Confined } from './confinement.ts'
import type { DiscoveryHooks, DiscoveryRules, Finder } from './discovery.ts'
import type { TailFiles } from './files.ts'
import type { FingerprintOptions } from './fingerprint.ts'
import { maxPollMs } from './polling.ts'
import type { FileProgress } from './progress.ts'
import type { FileShare, SharedReads } from './shared-reads.ts'
import type { Delimiter, Slab, SlabPool } from './slab.ts'

/** Default for the bytes of a file's turn. */
export const defaultReadBytes = 2048

export interface TailOptions {
  /** Those of the disk if not given. */
  readonly files?: TailFiles | undefined
  /** The folder that reading must not leave. */
  readonly confinement?: Confined | undefined
  readonly rules: DiscoveryRules
  /** The finder of the files, if several tailers share one; each finds its own if not given. */
  readonly find?: ((rules: DiscoveryRules, hooks: DiscoveryHooks) => Finder) | undefined
  /** Buffers that several tailers share. */
  readonly pool?: SlabPool | undefined
  /** Chunks that several tailers share. They need the same pool, and no exact bound of a turn. */
  readonly reads?: SharedReads | undefined
  /** Most rotated files of a folder that still have something to read; of more, the oldest is given up. */
  readonly maxRotatedFiles?: number | undefined
  /** Whether removed files that are still to be read must be given up, because the disk needs their room. */
  readonly isDiskFull?: (() => boolean) | undefined
  /** The thread, where several tailers share it. */
  readonly turns?: Turns | undefined
  readonly fingerprint: FingerprintOptions
  readonly delimiter: Delimiter
  readonly maxLineBytes: number
  /** A file's turn ends with the chunk in which this is passed, or, if it is exact, before more is read. */
  readonly maxReadBytes: number
  readonly isReadBoundExact?: boolean | undefined
  /** Where older files are read to their end first: in each folder, which keeps the order across a rotation, or among all files. */
  readonly oldestFirst: 'folder' | 'all' | undefined
  readonly readFrom: 'beginning' | 'end'
  readonly ignoreOlderMs: number | undefined
  readonly ignoreCheckpoints: boolean
  /** How long a file that is gone is kept open although it was not read to its end. */
  readonly rotateWaitMs: number | undefined
  /** How often all folders are walked, whether or not inotify reported a change. */
  readonly sweepMs: number
  /** Ends when all files have been read to their end. */
  readonly stopAtEnd: boolean
  /** A file is removed this long after it was delivered to its end. */
  readonly removeAfterMs: number | undefined
  /** Text after the last delimiter of a file that ends is a line too. */
  readonly lastLine: boolean
  readonly dataDir: string
  readonly componentId: string
  /** Whether metrics include the path of the file. */
  readonly fileTag: boolean
}

export interface TailHooks<State> {
  /** A file is being read from now on; returns what the reader keeps for it. */
  opened(file: TailedFile<State>): State
  /** Lines were read. The slab is valid until this returns, unless it is made `held`. */
  lines(file: TailedFile<State>, slab: Slab): Promise<void> | undefined
  /** A file ends: pass on the lines that are held back for it. */
  closed(file: TailedFile<State>): Promise<void> | undefined
  /** The tailer stops, and the file may continue: held-back lines are read again. Same as `closed` if not given. */
  stopped?(file: TailedFile<State>): Promise<void> | undefined
  /** This many bytes more have been written, by the size of the file. Called about once a second. */
  written?(file: TailedFile<State>, bytes: number): void
  /** This many bytes will not be read. */
  lost?(file: TailedFile<State>, bytes: number, reason: LossReason): void
  /** Whether a new file is better not read yet; asked for at most a second. */
  waits?(file: TailedFile<State>): boolean
  /** Once a second; for what waits for time to pass. */
  tick?(now: number): Promise<void> | undefined
}

/** When the line `[start, end)` was written, in ms; undefined if it does not say so. */
export type LineTime = (bytes: Buffer, start: number, end: number) => number | undefined

/** A file and its unread part. */
export interface ReadPosition<State> {
  readonly file: TailedFile<State>
  readonly size: number
  readonly unreadSince: number | undefined
}

export const lossReasons = ['rotated_files', 'disk_pressure', 'rotate_wait'] as const
export type LossReason = (typeof lossReasons)[number]

export class TailedFile<State> {
  path: string
  directory: string
  descriptor: number
  /** Device and inode. */
  inode: string
  readonly created: number
  readonly gzip: boolean
  /** Next byte to read: the start of the first line that is not whole. */
  offset: number
  /** End of what has been read, whole line or not. */
  readTo = -1
  /** When the line at a position was written, which was looked at last. */
  unread: { readonly offset: number; readonly since: number } | undefined
  /** Up to where writes have been reported to the hooks. */
  writtenTo: number
  progress: FileProgress
  state: State
  /** The parts that other tailers read, too. */
  share: FileShare | undefined
  /** When there may have been something new for the last time, by the monotonic clock. */
  newsAt = 0
  /** True while the reader skips the rest of a line that is too long. */
  discarding = false
  lastData: number
  goneSince: number | undefined
  closed = false
  byteTags: Readonly<Record<string, string>> | undefined
  /** Until then the reader may ask to wait with a new file. */
  waitUntil = 0
  /** A compressed file was read to its end. */
  finished = false
  /** inotify does not report its changes. */
  unwatched: boolean
  /** Milliseconds between two reads while it is polled. */
  pollMs = maxPollMs
  /** Time of the next poll by the monotonic clock; infinite while no poll is scheduled. */
  pollAt = Number.POSITIVE_INFINITY
  /** When the end of the file was last reached, and its position. */
  endAt = 0
  endTo = 0
  /** Whether the last poll found new bytes. */
  hadNews = false
  /** Whether the last poll found none. */
  isStalled = false
  /** Modification time when the fingerprint was last looked at. */
  checkedTime: number

  constructor(opened: {
    path: string
    descriptor: number
    stats: Stats
    gzip: boolean
    offset: number
    progress: FileProgress
    unwatched: boolean
  }) {
    this.path = opened.path
    this.directory = directoryOf(opened.path)
    this.descriptor = opened.descriptor
    this.inode = inodeOf(opened.stats)
    // Some file systems know no time of creation.
    this.created = opened.stats.birthtimeMs || opened.stats.ctimeMs
    this.gzip = opened.gzip
    this.offset = opened.offset
    this.writtenTo = opened.offset
    this.endTo = opened.offset
    this.progress = opened.progress
    this.unwatched = opened.unwatched
    this.lastData = opened.stats.mtimeMs
    this.checkedTime = opened.stats.mtimeMs
    this.state = undefined as State // set by `opened` before anything else sees the file
  }
}

/** Whether the file has bytes that were not read, such as while a full buffer holds the reader. */
export function hasUnread(file: TailedFile<unknown>): boolean {
  if (file.closed) return false
  return file.gzip ? !file.finished : sizeOf(file) > file.readTo
}

/** Device and inode as a key. */
export function inodeOf(stats: Stats): string {
  return `${stats.dev}:${stats.ino}`
}

export function directoryOf(path: string): string {
  const end = path.lastIndexOf('/')
  return end <= 0 ? '/' : path.slice(0, end)
}

/** Size of the file; the bytes read so far if it cannot be determined. */
export function sizeOf(file: { readonly descriptor: number; readonly offset: number }): number {
  try {
    return fstatSync(file.descriptor).size
  } catch {
    return file.offset
  }
}
