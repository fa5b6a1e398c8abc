// Reads the files of a tailer, chunk by chunk, in the order of each file. The reader does not keep an incomplete line; it reads the
// line again when the file has grown. One loop reads all files; it does no work per line, and no work for files without new data
// except for one read per beat.

import { Timestamp } from '../event/timestamp.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import { type TailFiles, tailFiles } from './files.ts'
import { GzipQueue } from './gzip-queue.ts'
import { Poller } from './poller.ts'
import { maxPollMs } from './polling.ts'
import type { FileRegistry } from './registry.ts'
import type { TailReports } from './reports.ts'
import type { SharedChunk } from './shared-reads.ts'
import { type Slab, type SlabPool, searchedBytes } from './slab.ts'
import type { StoppableWaits } from './stoppable-waits.ts'
import { byAge, sizeOf, type TailedFile, type TailHooks, type TailOptions } from './tailed-file.ts'

const coalesceMs = 10
/** How long a new file may be held back while its metadata is missing. */
const holdMs = 1000

interface Context<State> {
  readonly pool: SlabPool
  readonly registry: FileRegistry<State>
  readonly reports: TailReports
  readonly waits: StoppableWaits
  readonly events: ComponentEvents
  readonly stopping: AbortSignal
  /** Walks a folder if its modification time has changed. */
  look(directory: string): void
}

export class FileReader<State> {
  readonly #options: TailOptions
  readonly #files: TailFiles
  readonly #hooks: TailHooks<State>
  readonly #pool: SlabPool
  readonly #registry: FileRegistry<State>
  readonly #reports: TailReports
  readonly #waits: StoppableWaits
  readonly #events: ComponentEvents
  readonly #signal: AbortSignal
  readonly #poller: Poller<State>
  readonly #gzip: GzipQueue<State>

  /** Files that may have new data. */
  readonly #ready = new Set<TailedFile<State>>()
  /** New files that are held back. */
  readonly #held = new Set<TailedFile<State>>()
  /** Back-pressure of lines passed on outside the loop; the loop waits for it. */
  readonly #delays: Promise<void>[] = []
  #heldTimer: NodeJS.Timeout | undefined
  #wake: (() => void) | undefined
  #coalescing: NodeJS.Timeout | undefined
  #tickDue = false

  constructor(options: TailOptions, hooks: TailHooks<State>, context: Context<State>) {
    this.#options = options
    this.#files = options.files ?? tailFiles
    this.#hooks = hooks
    this.#pool = context.pool
    this.#registry = context.registry
    this.#reports = context.reports
    this.#waits = context.waits
    this.#events = context.events
    this.#signal = context.stopping
    this.#poller = new Poller({
      due: (file) => {
        file.newsAt = performance.now()
        this.#ready.add(file)
      },
      polled: () => {
        if (this.#ready.size > 0) this.#wake?.()
      },
      look: context.look,
      checkPath: (file) => this.#registry.checkPath(file),
    })
    this.#gzip = new GzipQueue(options, {
      pool: this.#pool,
      hooks,
      reports: this.#reports,
      waits: this.#waits,
      signal: this.#signal,
      take: (file, slab, length) => this.#take(file, slab, length, false),
      ended: () => this.#wake?.(),
    })
  }

  /** Reads until the agent stops, or, if `stopAtEnd` is set, until all files are at their end. */
  async run(): Promise<void> {
    const { turns } = this.#options
    let sliceStart = performance.now()
    while (!this.#signal.aborted) {
      for (let delay = this.#delays.shift(); delay !== undefined; delay = this.#delays.shift()) {
        await this.#waits.unlessStopping(delay)
      }
      if (this.#tickDue) {
        this.#tickDue = false
        await this.#waits.unlessStopping(this.#hooks.tick?.(Date.now()))
      }
      if (this.#ready.size === 0) {
        if (this.#options.stopAtEnd && this.#gzip.task === undefined) return this.#finishAll()
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
        if (turns !== undefined && !this.#signal.aborted) await this.#waits.unlessStopping(turns.next())
        sliceStart = performance.now()
        continue
      }
      for (const file of this.#turns()) {
        const waiting = turns === undefined ? this.#turn(file) : turns.spend(() => this.#turn(file))
        if (waiting !== undefined) await this.#waits.unlessStopping(waiting)
        if (this.#signal.aborted) return
        // Yields to the event loop, about once per chunk.
        if (performance.now() - sliceStart > 1) {
          if (turns === undefined) await new Promise<void>((resolve) => setImmediate(resolve))
          else await this.#waits.unlessStopping(turns.next())
          sliceStart = performance.now()
        }
      }
    }
  }

  /** Starts a new file; holds it back for up to a second if the hooks ask for it. */
  begin(file: TailedFile<State>): void {
    if (this.#hooks.waits?.(file) === true) {
      file.waitUntil = Math.max(file.waitUntil, Date.now() + holdMs)
      clearTimeout(this.#heldTimer)
      this.#heldTimer = setTimeout(() => this.releaseHeld(), holdMs)
    }
    if (file.gzip) this.#gzip.push(file)
    else this.mark(file)
  }

  /** Gives a file a turn. */
  mark(file: TailedFile<State>): void {
    if (file.closed || file.gzip) return
    file.newsAt = performance.now()
    this.#ready.add(file)
    // Writes within a few milliseconds are read together.
    if (this.#wake !== undefined && this.#coalescing === undefined) {
      this.#coalescing = setTimeout(() => {
        this.#coalescing = undefined
        this.#wake?.()
      }, coalesceMs)
    }
  }

  /** Gives a file no turn until it is marked again. */
  unmark(file: TailedFile<State>): void {
    this.#ready.delete(file)
  }

  /** Removes a file that is about to be closed from all turns and polls. */
  forget(file: TailedFile<State>): void {
    this.#ready.delete(file)
    this.#poller.forget(file)
  }

  isReady(file: TailedFile<State>): boolean {
    return this.#ready.has(file)
  }

  /** Whether all known data of a file has been read. */
  isAtEnd(file: TailedFile<State>): boolean {
    return !this.#ready.has(file) && !this.#held.has(file)
  }

  isPolled(file: TailedFile<State>): boolean {
    return this.#poller.has(file)
  }

  /** The files with unread data. */
  *filesWithNews(): Iterable<TailedFile<State>> {
    yield* this.#ready
    yield* this.#held
  }

  setBusy(directory: string, busy: boolean): void {
    this.#poller.setBusy(directory, busy)
    // Reads the data that has arrived so far. In a busy folder, this read also schedules the first poll.
    for (const file of this.#registry.filesIn(directory)) {
      file.pollMs = maxPollMs
      this.mark(file)
    }
  }

  /** Checks again whether held-back files can be read. */
  releaseHeld(): void {
    for (const file of this.#held) this.mark(file)
    this.#held.clear()
  }

  /** Calls the tick of the hooks in the next turn of the loop. */
  requestTick(): void {
    this.#tickDue = true
  }

  wake(): void {
    this.#wake?.()
  }

  /** Makes the loop wait for lines passed on outside it. */
  delay(promise: Promise<void> | undefined): void {
    if (promise !== undefined) this.#delays.push(promise)
  }

  /** Handles the end of a file: the text after its last delimiter may be a line, and no lines may stay held back. */
  finish(file: TailedFile<State>): void {
    const last = this.#options.lastLine ? this.#takeLastLine(file) : undefined
    const closed = this.#hooks.closed(file)
    this.#registry.close(file)
    this.delay(last)
    this.delay(closed)
  }

  /** Clears the timers and waits for running reads. */
  async stop(): Promise<void> {
    clearTimeout(this.#coalescing)
    clearTimeout(this.#heldTimer)
    this.#poller.stop()
    await this.#gzip.task
  }

  /** The files whose turn it is. */
  #turns(): Iterable<TailedFile<State>> {
    const { oldestFirst } = this.#options
    if (this.#ready.size === 1 || oldestFirst === undefined) return [...this.#ready]
    const oldest = new Map<string, TailedFile<State>>()
    for (const file of this.#ready) {
      const group = oldestFirst === 'folder' ? file.directory : ''
      const other = oldest.get(group)
      if (other === undefined || byAge(file, other) < 0) oldest.set(group, file)
    }
    return oldest.values()
  }

  /** Reads one file until its turn is over. Returns a promise if the pipeline must accept the lines first. */
  #turn(file: TailedFile<State>): Promise<void> | undefined {
    const { maxReadBytes } = this.#options
    let read = 0
    // Grows until it covers a whole line if the turn is shorter than a line.
    let reach = this.#options.isReadBoundExact === true ? maxReadBytes : Number.POSITIVE_INFINITY
    while (read < maxReadBytes) {
      if (file.closed || file.gzip || this.#mustWait(file)) {
        this.#ready.delete(file)
        return undefined
      }
      const shared = file.discarding ? undefined : file.share?.find()
      if (shared !== undefined) return this.#turnWithShared(file, shared)
      const slab = this.#pool.take()
      const capacity = Math.min(slab.buffer.length, reach)
      let length: number
      try {
        length = this.#files.readSync(file.descriptor, slab.buffer, 0, capacity, file.offset)
      } catch (error) {
        this.#pool.give(slab)
        this.#ready.delete(file)
        this.#reports.unread(file.path, error)
        return undefined
      }
      if (length === 0) {
        this.#pool.give(slab)
        this.#ready.delete(file)
        this.#atEnd(file)
        this.#poller.schedule(file)
        return undefined
      }
      if (file.isStalled && this.#isReplaced(file)) {
        this.#pool.give(slab)
        return undefined
      }
      const before = file.offset
      const waiting = this.#take(file, slab, length, length < capacity)
      if (file.offset === before && length === capacity && capacity < slab.buffer.length) {
        this.#pool.give(slab)
        reach *= 2
        continue
      }
      read += length
      if (!slab.held) this.#pool.give(slab)
      if (length < capacity) {
        // A short read means the end, until the next change, poll or beat.
        this.#ready.delete(file)
        this.#poller.schedule(file)
        return waiting
      }
      if (waiting !== undefined) return waiting
    }
    return undefined
  }

  /** A turn with a chunk that another tailer has read; it always covers the whole chunk. */
  #turnWithShared(file: TailedFile<State>, chunk: SharedChunk): Promise<void> | undefined {
    if (file.isStalled && this.#isReplaced(file)) return undefined
    const waiting = file.share?.use(chunk, (slab) => {
      this.#begin(file, slab, chunk.length)
      file.offset = slab.end
      return this.#handOn(file, slab)
    })
    this.#events.count('shared_reads_total', 1)
    if (chunk.isEnd && chunk.readAt >= file.newsAt) {
      this.#ready.delete(file)
      this.#poller.schedule(file)
    }
    return waiting
  }

  #mustWait(file: TailedFile<State>): boolean {
    if (file.waitUntil === 0) return false
    if (Date.now() < file.waitUntil && this.#hooks.waits?.(file) === true) {
      this.#held.add(file)
      this.#poller.schedule(file)
      return true
    }
    file.waitUntil = 0
    return false
  }

  /** Passes on the whole lines of a chunk and moves the offset past them. */
  #take(file: TailedFile<State>, slab: Slab, length: number, isEnd: boolean): Promise<void> | undefined {
    const { delimiter, maxLineBytes } = this.#options
    slab.base = file.offset
    this.#begin(file, slab, length)
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
      return this.#handOn(file, slab)
    }
    // Each tailer that skips a too long line counts it.
    const isWhole = from === 0 && slab.discarded === 0 && slab.count > 0
    const shared = isWhole ? file.share?.leave(slab, length, isEnd) : undefined
    file.offset = slab.end
    if (shared === undefined) return this.#handOn(file, slab)
    return file.share?.use(shared, (lines) => this.#handOn(file, lines))
  }

  /** Records the bytes read. */
  #begin(file: TailedFile<State>, slab: Slab, length: number): void {
    slab.time = Timestamp.now()
    // An incomplete line is read again each time, and is new only if it has grown.
    if (slab.base + length !== file.readTo) file.lastData = slab.time.ms
    file.readTo = slab.base + length
  }

  #handOn(file: TailedFile<State>, slab: Slab): Promise<void> | undefined {
    const { maxLineBytes } = this.#options
    if (slab.consumed > 0) this.#events.receivedBytes(slab.consumed, this.#reports.byteTags(file))
    if (slab.discarded > 0) this.#reports.tooLong(file.path, maxLineBytes, slab.discarded)
    if (slab.count === 0) {
      if (slab.consumed > 0) file.progress.skip(slab.end)
      return undefined
    }
    return this.#hooks.lines(file, slab)
  }

  /** Handles the end of the current data: checks whether the file was truncated or removed. */
  #atEnd(file: TailedFile<State>): void {
    // If the size is unavailable, the next read reports the error.
    if (sizeOf(file) < file.offset) this.#registry.restart(file)
  }

  /**
   * Whether an idle polled file was truncated and refilled beyond the read position: its size does not show this, but its first
   * lines do. If so, it is read from its beginning.
   */
  #isReplaced(file: TailedFile<State>): boolean {
    file.isStalled = false
    this.#registry.verify(file)
    return file.closed
  }

  #takeLastLine(file: TailedFile<State>): Promise<void> | undefined {
    if (file.discarding || file.closed || file.gzip) return undefined
    const slab = this.#pool.take()
    let length = 0
    try {
      length = this.#files.readSync(file.descriptor, slab.buffer, 0, slab.buffer.length, file.offset)
    } catch {
      // The first attempt has already reported an unreadable file.
    }
    let waiting: Promise<void> | undefined
    if (length > 0) {
      slab.base = file.offset
      slab.time = Timestamp.now()
      slab.split(0, length, this.#options.delimiter, this.#options.maxLineBytes)
      if (slab.consumed < length) slab.addLast(slab.consumed, length)
      file.offset = slab.end
      this.#events.receivedBytes(slab.consumed, this.#reports.byteTags(file))
      waiting = this.#hooks.lines(file, slab)
    }
    if (!slab.held) this.#pool.give(slab)
    return waiting
  }

  /** Passes on the last lines of all files, after each file has been read to its end. */
  async #finishAll(): Promise<void> {
    for (const file of [...this.#registry.files()]) this.finish(file)
    for (const delay of this.#delays) await this.#waits.unlessStopping(delay)
  }
}
