// A tailed file, and the contract between the engine and its users: options, and hooks for files and lines.

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

/** Default number of bytes per turn. */
export const defaultReadBytes = 2048

export interface TailOptions {
  /** By default those of the disk. */
  readonly files?: TailFiles | undefined
  /** The folder that reading must not leave. */
  readonly confinement?: Confined | undefined
  readonly rules: DiscoveryRules
  /** The shared finder of several tailers; without it, each tailer finds its own files. */
  readonly find?: ((rules: DiscoveryRules, hooks: DiscoveryHooks) => Finder) | undefined
  /** Buffers that several tailers share. */
  readonly pool?: SlabPool | undefined
  /** Chunks that several tailers share. They need the same pool, and no exact bound of a turn. */
  readonly reads?: SharedReads | undefined
  /** Maximum number of unread rotated files in a folder; beyond it, the oldest is closed. */
  readonly maxRotatedFiles?: number | undefined
  /** Whether unread removed files must be closed because the disk is full. */
  readonly isDiskFull?: (() => boolean) | undefined
  /** The shared turns of several tailers. */
  readonly turns?: Turns | undefined
  readonly fingerprint: FingerprintOptions
  readonly delimiter: Delimiter
  readonly maxLineBytes: number
  /** A file's turn ends with the chunk that exceeds this, or, if it is exact, before more is read. */
  readonly maxReadBytes: number
  readonly isReadBoundExact?: boolean | undefined
  /**
   * Whether older files are read to their end first within each folder, which keeps the order across a rotation, or among all
   * files.
   */
  readonly oldestFirst: 'folder' | 'all' | undefined
  readonly readFrom: 'beginning' | 'end'
  readonly ignoreOlderMs: number | undefined
  readonly ignoreCheckpoints: boolean
  /** How long a removed file is kept open even if it was not read to its end. */
  readonly rotateWaitMs: number | undefined
  /** Interval between walks of all folders, whether or not inotify reported a change. */
  readonly sweepMs: number
  /** Ends when all files have been read to their end. */
  readonly stopAtEnd: boolean
  /** A completely delivered file is removed after this time. */
  readonly removeAfterMs: number | undefined
  /** Whether text after the last delimiter of an ended file counts as a line. */
  readonly lastLine: boolean
  readonly dataDir: string
  readonly componentId: string
  /** Whether metrics include the path of the file. */
  readonly fileTag: boolean
}

export interface TailHooks<State> {
  /** Reading of a file starts; returns the reader's state for it. */
  opened(file: TailedFile<State>): State
  /** Lines were read. The slab is valid until this returns, unless it is set to `held`. */
  lines(file: TailedFile<State>, slab: Slab): Promise<void> | undefined
  /** A file ends: pass on its held lines. */
  closed(file: TailedFile<State>): Promise<void> | undefined
  /** The tailer stops, and the file may be continued: held lines are read again. Same as `closed` if not given. */
  stopped?(file: TailedFile<State>): Promise<void> | undefined
  /** This many more bytes were written, judging by the file size. Called about once a second. */
  written?(file: TailedFile<State>, bytes: number): void
  /** This many bytes will not be read. */
  lost?(file: TailedFile<State>, bytes: number, reason: LossReason): void
  /** Whether to hold a new file back; called for at most a second. */
  waits?(file: TailedFile<State>): boolean
  /** Called once a second, for time-based work. */
  tick?(now: number): Promise<void> | undefined
}

/** Write time of the line `[start, end)`, in ms; undefined if the line contains none. */
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
  /** Position of the next byte to read: the start of the first incomplete line. */
  offset: number
  /** End of the bytes read, including incomplete lines. */
  readTo = -1
  /** Write time of the line at the last examined position. */
  unread: { readonly offset: number; readonly since: number } | undefined
  /** Size up to which writes have been reported to the hooks. */
  writtenTo: number
  progress: FileProgress
  state: State
  /** The share of chunks read by other tailers. */
  share: FileShare | undefined
  /** Last time, on the monotonic clock, when new data was possible. */
  newsAt = 0
  /** True while the reader skips the rest of a line that is too long. */
  discarding = false
  lastData: number
  goneSince: number | undefined
  closed = false
  byteTags: Readonly<Record<string, string>> | undefined
  /** Until this time the hooks may hold a new file back. */
  waitUntil = 0
  /** Whether a compressed file was read to its end. */
  finished = false
  /** Whether inotify does not report its changes. */
  unwatched: boolean
  /** Milliseconds between two polls. */
  pollMs = maxPollMs
  /** Time of the next poll by the monotonic clock; infinite while no poll is scheduled. */
  pollAt = Number.POSITIVE_INFINITY
  /** When the end of the file was last reached, and at which position. */
  endAt = 0
  endTo = 0
  /** Whether the last poll found new bytes. */
  hadNews = false
  /** Whether the last poll found none. */
  isStalled = false
  /** Modification time at the last check of the fingerprint. */
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
    // Some file systems have no creation time.
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

/** Whether the file has unread bytes, for example because a full buffer blocks the reader. */
export function hasUnread(file: TailedFile<unknown>): boolean {
  if (file.closed) return false
  return file.gzip ? !file.finished : sizeOf(file) > file.readTo
}

/** Device and inode as a key. */
export function inodeOf(stats: Stats): string {
  return `${stats.dev}:${stats.ino}`
}

/** The folder of a path, which is absolute and does not end in a slash. */
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

/**
 * The order in which files were written, the oldest first. Clocks of file systems advance in steps of some milliseconds. Of two files from one
 * step, a rotated one is older than the current one, whose name its own begins with.
 */
export function byAge(left: { readonly created: number; readonly path: string }, right: typeof left): number {
  if (left.created !== right.created) return left.created - right.created
  if (left.path.startsWith(right.path)) return -1
  return left.path < right.path && !right.path.startsWith(left.path) ? -1 : 1
}
