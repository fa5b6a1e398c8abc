// The tailing engine: keeps found files open and hands on their lines, chunk by chunk, in the order of each file.
// A file is known by its fingerprint and read through its descriptor, so that a rename or a removal loses nothing. An
// incomplete line is not kept: it is read again when the file has grown. One loop reads; nothing happens per line or per file
// without data, but for one read at a slow beat.

import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync, unlinkSync } from 'node:fs'
import { BoundedMap } from '../bounded-map.ts'
import { Timestamp } from '../event/timestamp.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import { fact } from '../telemetry/facts.ts'
import type { Logger } from '../telemetry/logger.ts'
import { Checkpoints } from './checkpoint.ts'
import { CheckpointWriter } from './checkpoint-writer.ts'
import { Discovery, type DiscoveryHooks, type Finder, type FoundFile } from './discovery.ts'
import { type Fingerprint, Fingerprinter } from './fingerprint.ts'
import { gunzipFrom, type Taken } from './gzip.ts'
import { maxPollMs, nextPoll, pollIntervalMs, timerSlackMs } from './polling.ts'
import { leaveProgress, Progress, type ProgressState, takeProgress } from './progress.ts'
import { type Slab, SlabPool, searchedBytes } from './slab.ts'
import {
  directoryOf,
  inodeOf,
  type LineTime,
  type LossReason,
  type Standing,
  TailedFile,
  type TailHooks,
  type TailOptions,
} from './tailed-file.ts'

const chunkBytes = 64 * 1024
/** What is read to see when the next line was written. */
const glanceBytes = 4 * 1024
const coalesceMs = 10
const beatMs = 1000
/** How long a new file may be held back for what belongs to it. */
const holdMs = 1000
const idleMs = 10_000
/** A removed file is kept so long after its last line: its writer may not know yet. */
const lingerMs = 2000

export class Tailer<State> {
  readonly pool: SlabPool
  readonly #options: TailOptions
  readonly #hooks: TailHooks<State>
  readonly #events: ComponentEvents
  readonly #logger: Logger
  readonly #checkpoints: Checkpoints
  readonly #writer: CheckpointWriter
  readonly #fingerprinter: Fingerprinter
  readonly #discovery: Finder

  readonly #byInode = new Map<string, TailedFile<State>>()
  readonly #byPath = new Map<string, TailedFile<State>>()
  readonly #byDirectory = new Map<string, Set<TailedFile<State>>>()
  readonly #byFingerprint = new Map<Fingerprint, TailedFile<State>>()
  /** Files that are too short for a fingerprint or cannot be opened, with the size at the last attempt. */
  readonly #waiting = new Map<string, { size: number; unwatched: boolean }>()
  /** Second files of a fingerprint, by inode, with size and time when that was found. */
  readonly #doubles = new Map<string, { path: string; stamp: string; fingerprint: Fingerprint }>()
  /** Paths whose trouble has been reported. */
  readonly #reported = new BoundedMap<true>({ maxEntries: 1000, maxBytes: 256 * 1024 })

  readonly #ready = new Set<TailedFile<State>>()
  readonly #gzipQueue: TailedFile<State>[] = []
  #gzipTask: Promise<void> | undefined
  #started = false
  #stopped = false
  #beats = 0
  #lastSweep = 0
  #wake: (() => void) | undefined
  #coalescing: NodeJS.Timeout | undefined
  #tickDue = false
  readonly #signal: AbortSignal
  readonly #state: ProgressState
  readonly #replaces: boolean
  /** Of the tailer whose place it takes. */
  #inherited: ReadonlyMap<Fingerprint, Progress> | undefined

  constructor(
    options: TailOptions,
    hooks: TailHooks<State>,
    context: {
      readonly events: ComponentEvents
      readonly logger: Logger
      readonly stopping: AbortSignal
      /** Whether it goes on where a tailer of the same component has just ended. */
      readonly replaces?: boolean
    },
  ) {
    this.#options = options
    this.#hooks = hooks
    this.#events = context.events
    this.#logger = context.logger
    this.#signal = context.stopping
    this.#replaces = context.replaces === true && !options.ignoreCheckpoints
    const capacity = Math.max(chunkBytes, options.maxLineBytes + options.delimiter.length + 1)
    this.pool = options.pool !== undefined && options.pool.capacity >= capacity ? options.pool : new SlabPool(capacity)
    this.#checkpoints = new Checkpoints(options.dataDir, options.componentId, {
      ignoreOlderMs: options.ignoreOlderMs,
      ignoreAll: options.ignoreCheckpoints,
    })
    this.#writer = new CheckpointWriter(
      this.#checkpoints,
      () => this.#state.inFlight > 0,
      (count) => this.#events.count('checkpoints_total', count),
      (error) => this.#unwritable(error),
    )
    this.#fingerprinter = new Fingerprinter(options.fingerprint)
    const found: DiscoveryHooks = {
      listed: (directory, files, watched) => this.#listed(directory, files, watched),
      changed: (path) => this.#changed(path),
      busy: (directory, busy) => this.#setBusy(directory, busy),
      failed: (what, path, error) => this.#failed(what, path, error),
    }
    this.#discovery = options.find?.(options.rules, found) ?? new Discovery(options.rules, found)
    this.#state = { stopping: false, inFlight: 0, moved: () => this.#writer.moved() }
  }

  /** Asks the rules again which folders are to be looked into: one and what is below it, or all. */
  reconsider(directory?: string): void {
    this.#discovery.reconsider(directory)
    this.#releaseHeld()
  }

  /** Reads no more of what is below a folder. */
  leave(directory: string): void {
    this.#discovery.leave(directory)
  }

  /** Reads until `stopping` aborts, or until all files are at their end where the options say so. */
  async run(): Promise<void> {
    const onAbort = () => {
      this.#state.stopping = true
      this.#wake?.()
      for (const abandon of this.#abandons) abandon()
    }
    if (this.#signal.aborted) onAbort()
    this.#signal.addEventListener('abort', onAbort)
    const beat = setInterval(() => this.#onBeat(), beatMs)
    try {
      // Not before: when a source is replaced, its predecessor writes until it has ended.
      this.#checkpoints.load()
      const inherited = takeProgress(this.#options.dataDir, this.#options.componentId)
      if (this.#replaces) this.#inherited = inherited
      this.#discovery.sweep()
      this.#started = true
      this.#lastSweep = Date.now()
      await this.#loop()
      for (const file of [...this.#byInode.values()]) {
        const hooks = this.#hooks
        await this.#unlessStopping(hooks.stopped === undefined ? hooks.closed(file) : hooks.stopped(file))
      }
    } finally {
      clearInterval(beat)
      clearTimeout(this.#coalescing)
      clearTimeout(this.#heldTimer)
      clearTimeout(this.#pollTimer)
      this.#signal.removeEventListener('abort', onAbort)
      this.#discovery.close()
      await this.#gzipTask
      const { dataDir, componentId } = this.#options
      leaveProgress(
        dataDir,
        componentId,
        [...this.#byInode.values()].map((file) => file.progress),
      )
      for (const file of this.#byInode.values()) this.#closeDescriptor(file)
      this.#stopped = true
      await this.#writer.stop()
    }
  }

  async #loop(): Promise<void> {
    const { turns } = this.#options
    let sliceStart = performance.now()
    while (!this.#signal.aborted) {
      for (let delay = this.#delays.shift(); delay !== undefined; delay = this.#delays.shift()) {
        await this.#unlessStopping(delay)
      }
      if (this.#tickDue) {
        this.#tickDue = false
        await this.#unlessStopping(this.#hooks.tick?.(Date.now()))
      }
      if (this.#ready.size === 0) {
        if (this.#options.stopAtEnd && this.#gzipTask === undefined) return this.#finishAll()
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
        if (turns !== undefined && !this.#signal.aborted) await this.#unlessStopping(turns.next())
        sliceStart = performance.now()
        continue
      }
      for (const file of this.#turns()) {
        const waiting = turns === undefined ? this.#turn(file) : turns.spend(() => this.#turn(file))
        if (waiting !== undefined) await this.#unlessStopping(waiting)
        if (this.#signal.aborted) return
        // A turn of the event loop for the others, about once a chunk.
        if (performance.now() - sliceStart > 1) {
          if (turns === undefined) await new Promise<void>((resolve) => setImmediate(resolve))
          else await this.#unlessStopping(turns.next())
          sliceStart = performance.now()
        }
      }
    }
  }

  /** The files that have a turn now. */
  #turns(): Iterable<TailedFile<State>> {
    if (this.#ready.size === 1 || !this.#options.oldestFirst) return [...this.#ready]
    const oldest = new Map<string, TailedFile<State>>()
    for (const file of this.#ready) {
      const other = oldest.get(file.directory)
      if (other === undefined || file.created < other.created) oldest.set(file.directory, file)
    }
    return oldest.values()
  }

  /** Reads one file until its turn is over. Gives a promise when what was read must be waited for. */
  #turn(file: TailedFile<State>): Promise<void> | undefined {
    const { maxReadBytes } = this.#options
    let read = 0
    // Grows until a whole line is in it, where the turn is shorter than a line.
    let reach = this.#options.isReadBoundExact === true ? maxReadBytes : Number.POSITIVE_INFINITY
    while (read < maxReadBytes) {
      if (file.closed || file.gzip || this.#mustWait(file)) {
        this.#ready.delete(file)
        return undefined
      }
      const slab = this.pool.take()
      const capacity = Math.min(slab.buffer.length, reach)
      let length: number
      try {
        length = readSync(file.descriptor, slab.buffer, 0, capacity, file.offset)
      } catch (error) {
        this.pool.give(slab)
        this.#ready.delete(file)
        this.#reportOnce(`read ${file.path}`, () =>
          this.#events.error({
            type: 'io_failed',
            stage: 'receiving',
            code: 'reading_file',
            message: 'A file could not be read.',
            fields: { file: fact(file.path), error },
          }),
        )
        return undefined
      }
      if (length === 0) {
        this.pool.give(slab)
        this.#ready.delete(file)
        this.#atEnd(file)
        this.#schedule(file)
        return undefined
      }
      if (file.isSilent && this.#isReplaced(file)) {
        this.pool.give(slab)
        return undefined
      }
      const before = file.offset
      const waiting = this.#take(file, slab, length)
      if (file.offset === before && length === capacity && capacity < slab.buffer.length) {
        this.pool.give(slab)
        reach *= 2
        continue
      }
      read += length
      if (!slab.held) this.pool.give(slab)
      if (length < capacity) {
        // A short read is the end, until the next change, poll or beat.
        this.#ready.delete(file)
        this.#schedule(file)
        return waiting
      }
      if (waiting !== undefined) return waiting
    }
    return undefined
  }

  #mustWait(file: TailedFile<State>): boolean {
    if (file.waitUntil === 0) return false
    if (Date.now() < file.waitUntil && this.#hooks.waits?.(file) === true) {
      this.#held.add(file)
      this.#schedule(file)
      return true
    }
    file.waitUntil = 0
    return false
  }

  /** New files that are not read yet. */
  readonly #held = new Set<TailedFile<State>>()
  #heldTimer: NodeJS.Timeout | undefined

  /** Looks again whether new files can be read. */
  #releaseHeld(): void {
    for (const file of this.#held) this.#mark(file)
    this.#held.clear()
  }

  /** Hands on the whole lines of a chunk and moves the offset past them. */
  #take(file: TailedFile<State>, slab: Slab, length: number): Promise<void> | undefined {
    const { delimiter, maxLineBytes } = this.#options
    slab.base = file.offset
    slab.time = Timestamp.now()
    // What is not yet a line is read again and again, and is news only when it has grown.
    if (slab.base + length !== file.readTo) file.lastData = slab.time.ms
    file.readTo = slab.base + length
    let from = 0
    const searched = searchedBytes(length, delimiter)
    if (file.discarding) {
      const end = delimiter.find(slab.buffer.subarray(0, length), 0)
      if (end < 0) {
        file.offset += Math.max(0, searched)
        return undefined
      }
      from = end + delimiter.length
      file.discarding = false
    }
    slab.split(from, length, delimiter, maxLineBytes)
    if (length - slab.consumed > maxLineBytes + delimiter.length) {
      slab.discarded++
      file.discarding = true
      file.offset = slab.base + searched
    } else {
      file.offset = slab.end
    }
    if (slab.consumed > 0) this.#events.receivedBytes(slab.consumed, this.#byteTags(file))
    if (slab.discarded > 0) this.#tooLong(file, slab.discarded)
    if (slab.count === 0) {
      if (slab.consumed > 0) file.progress.skip(slab.end)
      return undefined
    }
    return this.#hooks.lines(file, slab)
  }

  #tooLong(file: TailedFile<State>, count: number): void {
    this.#events.error({
      type: 'condition_failed',
      stage: 'receiving',
      code: 'reading_line_from_file',
      message: 'A line is longer than `max_line_bytes` and was discarded.',
      fields: { file: fact(file.path), max_line_bytes: this.#options.maxLineBytes },
      count,
    })
    this.#events.discarded(count, false, 'The line is longer than `max_line_bytes`.')
  }

  /** A file has no more for now: was it cut, or removed? */
  #atEnd(file: TailedFile<State>): void {
    let size: number
    try {
      size = fstatSync(file.descriptor).size
    } catch {
      return // reported by the next read
    }
    if (size < file.offset) this.#truncated(file)
  }

  /**
   * Whether a file that is polled was cut and filled again while it was silent, beyond where it was read: its size does not say
   * so, but its first lines do. True if it was, and is read from its beginning.
   */
  #isReplaced(file: TailedFile<State>): boolean {
    file.isSilent = false
    this.#verify(file)
    return file.closed
  }

  #truncated(file: TailedFile<State>): void {
    this.#logger.info({ file: file.path }, 'File was truncated; reading it from its beginning.')
    const { path, unwatched } = file
    this.#close(file)
    file.progress.close()
    this.#checkpoints.delete(file.progress.fingerprint)
    this.#open(path, unwatched)
  }

  // --- finding ---

  #changed(path: string): void {
    const file = this.#byPath.get(path)
    if (file !== undefined) this.#mark(file)
    else if (this.#waiting.has(path)) this.#retry(path)
  }

  // --- polling ---

  /** Directories that discovery does not watch, because they have many writes. */
  readonly #busy = new Set<string>()
  /** Files that have been read to their end and wait for their next poll. */
  readonly #polled = new Set<TailedFile<State>>()
  #pollTimer: NodeJS.Timeout | undefined
  #pollTimerAt = Number.POSITIVE_INFINITY

  #setBusy(directory: string, busy: boolean): void {
    if (busy) this.#busy.add(directory)
    else this.#busy.delete(directory)
    // Reads what has arrived until now. In a busy folder, this read also schedules the first poll.
    for (const file of this.#byDirectory.get(directory) ?? []) {
      file.pollMs = maxPollMs
      this.#mark(file)
    }
  }

  /** Whether the tailer must poll a file because inotify does not report its changes. A silent file behind a link needs only the beat. */
  #isPolled(file: TailedFile<State>): boolean {
    return this.#busy.has(file.directory) || (file.unwatched && Date.now() - file.lastData < idleMs)
  }

  /** Schedules the next poll of a file that has been read to its end or must wait. */
  #schedule(file: TailedFile<State>): void {
    if (file.closed || file.gzip || !this.#isPolled(file)) {
      this.#polled.delete(file)
      file.pollAt = Number.POSITIVE_INFINITY
      return
    }
    const now = performance.now()
    const bytes = file.readTo - file.endTo
    file.pollMs = pollIntervalMs(bytes, now - file.endAt, file.pollMs)
    file.endAt = now
    if (bytes > 0) file.endTo = file.readTo
    file.pollAt = nextPoll(now, file.pollMs)
    this.#polled.add(file)
    if (file.pollAt < this.#pollTimerAt) this.#setPollTimer(file.pollAt, now)
    const isSilent = file.hadNews && bytes <= 0
    file.hadNews = bytes > 0
    file.isSilent = bytes <= 0
    // The writer may have moved on to another file.
    if (isSilent && this.#busy.has(file.directory)) this.#discovery.look(file.directory)
    else if (isSilent) this.#checkPath(file)
  }

  #setPollTimer(at: number, now: number): void {
    clearTimeout(this.#pollTimer)
    this.#pollTimerAt = at
    this.#pollTimer = setTimeout(this.#poll, at - now)
  }

  readonly #poll = (): void => {
    this.#pollTimerAt = Number.POSITIVE_INFINITY
    const now = performance.now()
    const due = now + timerSlackMs
    let next = Number.POSITIVE_INFINITY
    for (const file of this.#polled) {
      if (file.pollAt > due) {
        if (file.pollAt < next) next = file.pollAt
        continue
      }
      this.#polled.delete(file)
      file.pollAt = Number.POSITIVE_INFINITY
      this.#ready.add(file)
    }
    if (next < Number.POSITIVE_INFINITY) this.#setPollTimer(next, now)
    if (this.#ready.size > 0) this.#wake?.()
  }

  #mark(file: TailedFile<State>): void {
    if (file.closed || file.gzip) return
    this.#ready.add(file)
    // What comes within a few milliseconds is read together.
    if (this.#wake !== undefined && this.#coalescing === undefined) {
      this.#coalescing = setTimeout(() => {
        this.#coalescing = undefined
        this.#wake?.()
      }, coalesceMs)
    }
  }

  #listed(directory: string, files: readonly FoundFile[], watched: boolean): void {
    const present = new Set<TailedFile<State>>()
    const paths = new Set<string>()
    const unknown: { path: string; unwatched: boolean }[] = []
    for (const { path, link } of files) {
      paths.add(path)
      let stats: Stats
      try {
        stats = statSync(path)
      } catch {
        continue // removed since the folder was read
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
      this.#mark(file)
    }
    for (const path of this.#waiting.keys()) {
      if (!paths.has(path) && directoryOf(path) === directory) this.#forget(path)
    }
    for (const [inode, double] of this.#doubles) {
      if (!paths.has(double.path) && directoryOf(double.path) === directory) this.#doubles.delete(inode)
    }
    // The oldest first, so that a restart goes on in the order in which files were written.
    if (unknown.length > 1) unknown.sort((left, right) => createdTime(left.path) - createdTime(right.path))
    for (const { path, unwatched } of unknown) this.#open(path, unwatched)
    this.#events.gauge('open_files', this.#byInode.size)
  }

  /** inotify does not report it when a symbolic link gets another target. */
  #checkPath(file: TailedFile<State>): void {
    if (file.unwatched && !this.#pathLeadsTo(file.path, file.inode)) this.#discovery.rescan(file.directory)
  }

  #pathLeadsTo(path: string, inode: string): boolean {
    try {
      return inodeOf(statSync(path)) === inode
    } catch {
      return false
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

  #forget(path: string): void {
    this.#waiting.delete(path)
    this.#reported.delete(path)
  }

  /** Tries again to open a file that was too short. */
  #retry(path: string): void {
    const waiting = this.#waiting.get(path)
    if (waiting === undefined) return
    try {
      if (statSync(path).size === waiting.size) return
    } catch {
      return // gone: its folder will say so
    }
    this.#open(path, waiting.unwatched)
  }

  #open(path: string, unwatched: boolean): void {
    let descriptor: number
    try {
      // A pipe at the end of a link would hold the whole process until somebody writes into it.
      descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      this.#waiting.set(path, { size: -1, unwatched })
      this.#reportOnce(path, () => this.#unreadable(path, error))
      return
    }
    let kept = false
    try {
      if (this.#options.confinement?.holds(descriptor) === false) {
        this.#reportOnce(`outside ${path}`, () => this.#outside(path))
        return
      }
      kept = this.#admit(path, descriptor, unwatched)
    } catch (error) {
      this.#waiting.set(path, { size: -1, unwatched })
      this.#reportOnce(path, () => this.#unreadable(path, error))
    } finally {
      if (!kept) closeSync(descriptor)
    }
  }

  #outside(path: string): void {
    this.#events.error({
      type: 'reader_failed',
      stage: 'receiving',
      code: 'outside_of_volume',
      message: 'A link leads out of the log volume, or to what is no regular file; it is not read.',
      fields: { file: path },
    })
  }

  #unreadable(path: string, error: unknown): void {
    this.#events.error({
      type: 'reader_failed',
      stage: 'receiving',
      code: 'reading_fingerprint',
      message: 'A file could not be opened or its first lines could not be read.',
      fields: { file: fact(path), error },
    })
  }

  /** Decides what an open file is: new, known under another name, a double, or too short. True if it is read from now on. */
  #admit(path: string, descriptor: number, unwatched: boolean): boolean {
    const options = this.#options
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) return false
    const stamp = `${stats.size} ${stats.mtimeMs}`
    if (this.#doubles.get(inodeOf(stats))?.stamp === stamp) return false
    const identity = this.#fingerprinter.identify(descriptor, options.stopAtEnd)
    if (identity === undefined) {
      this.#waiting.set(path, { size: stats.size, unwatched })
      this.#reportOnce(path, () => this.#events.count('checksum_errors_total', 1, this.#tags({ path })))
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
        this.#reportOnce(`double ${path}`, () =>
          this.#logger.warn(
            { file: path, other: other.path },
            'Two files begin with the same lines and are taken for one. If they are not, raise the number of fingerprint lines.',
          ),
        )
      }
      this.#doubles.set(inodeOf(stats), { path, stamp, fingerprint })
      return false
    }

    const inherited = this.#inherited?.get(fingerprint)
    const reach = inherited?.reach
    // What a predecessor has handed on is on its way, though not delivered yet: it is not read again.
    const goesOn = inherited !== undefined && reach !== undefined && (gzip || reach <= stats.size)
    const known = goesOn ? reach : this.#checkpoints.get(fingerprint)
    let offset = 0
    if (known !== undefined) offset = !gzip && known > stats.size ? 0 : known
    else if (options.ignoreOlderMs !== undefined && Date.now() - stats.mtimeMs > options.ignoreOlderMs)
      offset = stats.size
    else if (!this.#started && options.readFrom === 'end') offset = stats.size
    if (gzip && known === undefined && offset > 0) {
      this.#doubles.set(inodeOf(stats), { path, stamp, fingerprint })
      return false
    }
    if (goesOn) inherited.passTo(this.#checkpoints, this.#state)
    const progress = goesOn ? inherited : new Progress(fingerprint, offset, this.#checkpoints, this.#state)
    const file = new TailedFile<State>({ path, descriptor, stats, gzip, offset, progress, unwatched })
    this.#events.count(known === undefined ? 'files_added_total' : 'files_resumed_total', 1, this.#tags(file))
    this.#logger.debug({ file: path, position: offset }, known === undefined ? 'Found a file.' : 'Resuming a file.')
    this.#byInode.set(file.inode, file)
    this.#byFingerprint.set(fingerprint, file)
    this.#index(file)
    file.state = this.#hooks.opened(file)
    if (this.#hooks.waits?.(file) === true) {
      file.waitUntil = Date.now() + holdMs
      clearTimeout(this.#heldTimer)
      this.#heldTimer = setTimeout(() => this.#releaseHeld(), holdMs)
    }
    if (gzip) this.#queueGzip(file)
    else this.#mark(file)
    return true
  }

  /** Goes on in a copy of the file. */
  #switch(file: TailedFile<State>, path: string, descriptor: number, stats: Stats, unwatched: boolean): void {
    this.#byInode.delete(file.inode)
    this.#closeDescriptor(file)
    file.descriptor = descriptor
    file.inode = inodeOf(stats)
    file.goneSince = undefined
    file.unwatched = unwatched
    this.#byInode.set(file.inode, file)
    if (file.path !== path) this.#rename(file, path)
    this.#mark(file)
  }

  #close(file: TailedFile<State>): void {
    if (file.closed) return
    this.#measure(file)
    file.closed = true
    this.#ready.delete(file)
    this.#polled.delete(file)
    this.#byInode.delete(file.inode)
    if (this.#byPath.get(file.path) === file) this.#byPath.delete(file.path)
    if (this.#byFingerprint.get(file.progress.fingerprint) === file) {
      this.#byFingerprint.delete(file.progress.fingerprint)
    }
    const siblings = this.#byDirectory.get(file.directory)
    siblings?.delete(file)
    if (siblings?.size === 0) this.#byDirectory.delete(file.directory)
    this.#closeDescriptor(file)
    this.#events.count('files_unwatched_total', 1, this.#tags(file))
    this.#events.gauge('open_files', this.#byInode.size)
  }

  #closeDescriptor(file: TailedFile<State>): void {
    try {
      closeSync(file.descriptor)
    } catch {
      // Already closed by a gzip reader that failed: nothing is held any more.
    }
  }

  // --- time ---

  #onBeat(): void {
    if (this.#stopped || this.#signal.aborted) return
    const now = Date.now()
    this.#beats++
    this.#discovery.beat(now)
    if (now - this.#lastSweep >= this.#options.sweepMs) {
      this.#lastSweep = now
      this.#discovery.sweep()
      for (const file of [...this.#byInode.values()]) this.#verify(file)
    }
    for (const path of [...this.#waiting.keys()]) this.#retry(path)
    for (const file of [...this.#byInode.values()]) this.#checkPath(file)
    this.#tickDue = true
    this.#makeRoom()
    for (const file of [...this.#byInode.values()]) {
      if (file.goneSince !== undefined) this.#considerClosing(file, file.goneSince, now)
      else if (this.#options.removeAfterMs !== undefined) this.#considerRemoving(file, this.#options.removeAfterMs, now)
    }
    const all = this.#beats % (idleMs / beatMs) === 0
    for (const file of this.#byInode.values()) {
      this.#measure(file)
      // Polled files have a timer of their own.
      if (all || file.goneSince !== undefined) this.#mark(file)
      else if (!this.#polled.has(file) && (file.unwatched || now - file.lastData < idleMs)) this.#mark(file)
    }
    this.#checkpoints.prune((fingerprint) => this.#byFingerprint.has(fingerprint) || this.#isDouble(fingerprint), now)
    if (this.#checkpoints.changed) this.#writer.moved()
    this.#wake?.()
  }

  #isDouble(fingerprint: Fingerprint): boolean {
    for (const double of this.#doubles.values()) if (double.fingerprint === fingerprint) return true
    return false
  }

  /** Looks whether the file still begins with the same lines: it may have been cut and filled again in between. */
  #verify(file: TailedFile<State>): void {
    if (file.closed || file.gzip || this.#options.fingerprint.strategy !== 'checksum') return
    try {
      const stats = fstatSync(file.descriptor)
      if (stats.mtimeMs === file.checkedTime) return
      file.checkedTime = stats.mtimeMs
      const identity = this.#fingerprinter.identify(file.descriptor, this.#options.stopAtEnd)
      if (identity?.fingerprint !== file.progress.fingerprint) this.#truncated(file)
    } catch (error) {
      this.#reportOnce(file.path, () => this.#unreadable(file.path, error))
    }
  }

  /** Closes a file that is gone, once it was read to its end and its writer has had time to let go. */
  #considerClosing(file: TailedFile<State>, goneSince: number, now: number): void {
    if (file.gzip) {
      if (file.finished) this.#finish(file)
      return
    }
    const { rotateWaitMs } = this.#options
    if (rotateWaitMs !== undefined && now - goneSince >= rotateWaitMs) {
      this.#reportLoss(file, 'rotate_wait')
      this.#finish(file)
      return
    }
    let size: number
    try {
      size = fstatSync(file.descriptor).size
    } catch {
      size = 0
    }
    const rest = size - file.offset
    // Bytes that were read and are still ahead of the offset are not a whole line.
    const isRead = !this.#ready.has(file) && file.readTo === size
    const atEnd = rest <= 0 || (isRead && rest <= this.#options.maxLineBytes)
    if (atEnd && now - Math.max(goneSince, file.lastData) >= lingerMs) this.#finish(file)
  }

  // --- how far reading is behind ---

  /** When the oldest line was written that waits to be read, in ms; undefined where none does. Only files with news are looked at. */
  oldestUnread(timeOf: LineTime): number | undefined {
    let oldest: number | undefined
    for (const files of [this.#ready, this.#held]) {
      for (const file of files) {
        const time = this.#unreadSince(file, timeOf)
        if (time !== undefined && (oldest === undefined || time < oldest)) oldest = time
      }
    }
    return oldest
  }

  /** The open files that are wanted, with their sizes and the time of the oldest line that waits in each. */
  standing(wanted: (file: TailedFile<State>) => boolean, timeOf: LineTime): Standing<State>[] {
    return [...this.#byInode.values()]
      .filter((file) => !file.gzip && wanted(file))
      .map((file) => ({ file, size: sizeOf(file), unreadSince: this.#unreadSince(file, timeOf) }))
  }

  /** Looks at the lines from where reading will go on: only they say when they were written. Looked at once for each position. */
  #unreadSince(file: TailedFile<State>, timeOf: LineTime): number | undefined {
    if (this.#stopped || file.closed || file.gzip || file.discarding) return undefined
    if (file.unread?.offset === file.offset) return file.unread.since
    const slab = this.pool.take()
    try {
      // Nearly always the first line says it: a whole chunk is read only where that is longer.
      for (const most of [Math.min(glanceBytes, slab.buffer.length), slab.buffer.length]) {
        const length = readSync(file.descriptor, slab.buffer, 0, most, file.offset)
        slab.split(0, length, this.#options.delimiter, this.#options.maxLineBytes)
        for (let line = 0; line < slab.count; line++) {
          const since = timeOf(slab.buffer, slab.starts[line] as number, slab.ends[line] as number)
          if (since === undefined) continue
          file.unread = { offset: file.offset, since }
          return since
        }
        if (length < most) break
      }
    } catch {
      // The next read gets the same error, and reports it.
    } finally {
      this.pool.give(slab)
    }
    return undefined
  }

  // --- what is written, and what is given up ---

  /** Reports how much has been written since the last call. */
  #measure(file: TailedFile<State>, isRead = !this.#ready.has(file) && !this.#held.has(file)): void {
    if (this.#hooks.written === undefined || file.gzip) return
    const size = isRead ? file.readTo : sizeOf(file)
    if (size <= file.writtenTo) return
    this.#hooks.written(file, size - file.writtenTo)
    file.writtenTo = size
  }

  #reportLoss(file: TailedFile<State>, reason: LossReason, end = sizeOf(file)): void {
    this.#measure(file, false)
    const rest = end - file.offset
    if (rest > 0) this.#hooks.lost?.(file, rest, reason)
  }

  /** Reads no more of a file that goes no further. */
  #giveUp(file: TailedFile<State>, reason: LossReason): void {
    const end = sizeOf(file)
    if (end <= file.offset) return
    this.#reportLoss(file, reason, end)
    const waiting = this.#hooks.closed(file)
    if (waiting !== undefined) this.#delays.push(waiting)
    file.offset = end
    file.progress.skip(end)
    this.#ready.delete(file)
  }

  /** Gives up what there is no room for: the oldest first. */
  #makeRoom(): void {
    const { maxRotatedFiles, isDiskFull } = this.#options
    if (maxRotatedFiles !== undefined) {
      for (const siblings of this.#byDirectory.values()) {
        if (siblings.size <= maxRotatedFiles) continue
        const rotated = [...siblings].filter((file) => isRotated(file) && file.offset < sizeOf(file))
        if (rotated.length <= maxRotatedFiles) continue
        rotated.sort(byAge)
        for (const file of rotated.slice(0, rotated.length - maxRotatedFiles)) this.#giveUp(file, 'rotated_files')
      }
    }
    if (isDiskFull?.() !== true) return
    // One at a time: the room of each is looked for before the next.
    const removed = [...this.#byInode.values()].filter((file) => file.goneSince !== undefined && !file.gzip)
    const oldest = removed.filter((file) => file.offset < sizeOf(file)).sort(byAge)[0]
    if (oldest === undefined) return
    this.#giveUp(oldest, 'disk_pressure')
    this.#finish(oldest)
  }

  /** The end of a file: what stands after its last delimiter may be a line, and nothing may be held back for it. */
  #finish(file: TailedFile<State>): void {
    const waiting = [this.#options.lastLine ? this.#takeLastLine(file) : undefined, this.#hooks.closed(file)]
    this.#close(file)
    for (const promise of waiting) if (promise !== undefined) this.#delays.push(promise)
  }

  /** Back-pressure of what was handed on outside the loop: the loop waits for it. */
  readonly #delays: Promise<void>[] = []

  #takeLastLine(file: TailedFile<State>): Promise<void> | undefined {
    if (file.discarding || file.closed || file.gzip) return undefined
    const slab = this.pool.take()
    let length = 0
    try {
      length = readSync(file.descriptor, slab.buffer, 0, slab.buffer.length, file.offset)
    } catch {
      // What cannot be read was reported when it was first tried.
    }
    let waiting: Promise<void> | undefined
    if (length > 0) {
      slab.base = file.offset
      slab.time = Timestamp.now()
      slab.split(0, length, this.#options.delimiter, this.#options.maxLineBytes)
      if (slab.consumed < length) slab.addLast(slab.consumed, length)
      file.offset = slab.end
      this.#events.receivedBytes(slab.consumed, this.#byteTags(file))
      waiting = this.#hooks.lines(file, slab)
    }
    if (!slab.held) this.pool.give(slab)
    return waiting
  }

  #considerRemoving(file: TailedFile<State>, afterMs: number, now: number): void {
    if (file.progress.position !== file.offset || now - file.lastData < afterMs) return
    try {
      if (!file.gzip && fstatSync(file.descriptor).size !== file.offset) return
      if (this.#options.confinement?.mayRemove(file.path) === false) return
      unlinkSync(file.path)
      this.#events.count('files_deleted_total', 1, this.#tags(file))
    } catch (error) {
      this.#reportOnce(`remove ${file.path}`, () =>
        this.#events.error({
          type: 'io_failed',
          stage: 'receiving',
          code: 'deleting_file',
          message: 'A file could not be removed after it was read.',
          fields: { file: fact(file.path), error },
        }),
      )
    }
  }

  /** All files are at their end: their last lines are handed on. */
  async #finishAll(): Promise<void> {
    for (const file of [...this.#byInode.values()]) this.#finish(file)
    for (const delay of this.#delays) await this.#unlessStopping(delay)
  }

  // --- compressed files ---

  #queueGzip(file: TailedFile<State>): void {
    this.#gzipQueue.push(file)
    this.#gzipTask ??= this.#readGzipFiles().finally(() => {
      this.#gzipTask = undefined
      this.#wake?.()
    })
  }

  async #readGzipFiles(): Promise<void> {
    for (let file = this.#gzipQueue.shift(); file !== undefined; file = this.#gzipQueue.shift()) {
      const current = file
      try {
        await gunzipFrom(current.descriptor, current.offset, this.pool, this.#signal, (slab, length, last) =>
          this.#takeGzip(current, slab, length, last),
        )
        current.finished = true
        await this.#unlessStopping(this.#hooks.closed(current))
      } catch (error) {
        if (this.#signal.aborted) return
        this.#reportOnce(`read ${current.path}`, () =>
          this.#events.error({
            type: 'io_failed',
            stage: 'receiving',
            code: 'reading_file',
            message: 'A compressed file could not be read.',
            fields: { file: fact(current.path), error },
          }),
        )
      }
    }
  }

  #takeGzip(file: TailedFile<State>, slab: Slab, length: number, last: boolean): Taken {
    const before = file.offset
    if (file.closed) return { bytes: length, waiting: undefined }
    const waiting = length === 0 ? undefined : this.#take(file, slab, length)
    const bytes = file.offset - before
    if (!last || file.discarding || bytes === length) return { bytes, waiting: this.#waited(waiting) }
    // The last line has no delimiter.
    const rest = this.pool.take()
    slab.buffer.copy(rest.buffer, 0, bytes, length)
    rest.base = file.offset
    rest.time = slab.time
    rest.split(0, 0, this.#options.delimiter, this.#options.maxLineBytes)
    rest.addLast(0, length - bytes)
    file.offset = rest.end
    const lastWaiting = this.#hooks.lines(file, rest)
    if (!rest.held) this.pool.give(rest)
    return { bytes: length, waiting: this.#waited(lastWaiting ?? waiting) }
  }

  #waited(promise: Promise<void> | undefined): Promise<void> | undefined {
    return promise === undefined ? undefined : this.#unlessStopping(promise)
  }

  // --- reports ---

  #unwritable(error: unknown): void {
    this.#events.error({
      type: 'writer_failed',
      stage: 'receiving',
      code: 'writing_checkpoints',
      message: 'The positions of files could not be written; after a restart, lines may be read twice.',
      fields: { data_dir: fact(this.#options.dataDir), error },
    })
  }

  #failed(what: 'watching' | 'globbing', path: string, error: unknown): void {
    this.#reportOnce(`${what} ${path}`, () =>
      this.#events.error({
        type: what === 'watching' ? 'command_failed' : 'reader_failed',
        stage: 'receiving',
        code: what,
        message:
          what === 'watching'
            ? 'A folder cannot be watched and is looked at every second in place of that.'
            : 'A folder could not be read.',
        fields: { directory: fact(path), error },
      }),
    )
  }

  #reportOnce(key: string, report: () => void): void {
    if (this.#reported.get(key) !== undefined) return
    this.#reported.set(key, true)
    report()
  }

  #tags(file: { path: string }): Readonly<Record<string, string>> {
    return this.#options.fileTag ? { file: file.path } : noTags
  }

  /** Tags of `component_received_bytes_total`: one object for each file, by which the counter is found. */
  #byteTags(file: TailedFile<State>): Readonly<Record<string, string>> {
    if (!this.#options.fileTag) return fileProtocol
    file.byteTags ??= { protocol: 'file', file: file.path }
    return file.byteTags
  }

  /** Waits for back-pressure, but no longer than until the agent stops. */
  async #unlessStopping(promise: Promise<void> | undefined): Promise<void> {
    if (promise === undefined || this.#signal.aborted) return
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#abandons.delete(done)
        resolve()
      }
      this.#abandons.add(done)
      promise.then(done, (error: unknown) => {
        this.#logger.error({ error }, 'Handing on lines failed.')
        done()
      })
    })
  }

  /** Ends waits when the agent stops. */
  readonly #abandons = new Set<() => void>()
}

/** What the file holds; what was read of it if it cannot be asked. */
function sizeOf(file: { readonly descriptor: number; readonly offset: number }): number {
  try {
    return fstatSync(file.descriptor).size
  } catch {
    return file.offset
  }
}

/** Whether nobody writes to a file any more: it was removed, or has got another name beside its own. */
function isRotated(file: { readonly path: string; readonly goneSince: number | undefined; readonly gzip: boolean }) {
  return !file.gzip && (file.goneSince !== undefined || !file.path.endsWith('.log'))
}

function byAge(left: { readonly created: number; readonly path: string }, right: typeof left): number {
  return left.created - right.created || (left.path < right.path ? -1 : 1)
}

const fileProtocol = { protocol: 'file' }
const noTags = {}

function newer(stats: Stats, file: { readonly descriptor: number }): boolean {
  return stats.mtimeMs > fstatSync(file.descriptor).mtimeMs
}

function createdTime(path: string): number {
  try {
    const stats = statSync(path)
    return stats.birthtimeMs || stats.ctimeMs
  } catch {
    return 0
  }
}
