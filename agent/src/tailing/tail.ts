// The tailing engine: keeps found files open and passes on their lines, chunk by chunk, in the order of each file. The registry knows
// the files, the reader reads them, and the retention closes them. This class connects them to discovery, checkpoints and timers.

import type { ComponentEvents } from '../telemetry/component-events.ts'
import type { Logger } from '../telemetry/logger.ts'
import { Checkpoints } from './checkpoint.ts'
import { CheckpointWriter } from './checkpoint-writer.ts'
import { Discovery, type DiscoveryHooks, type Finder } from './discovery.ts'
import { idleMs } from './poller.ts'
import { leaveProgress, type ProgressState, takeProgress } from './progress.ts'
import { FileReader } from './reader.ts'
import { FileRegistry } from './registry.ts'
import { TailReports } from './reports.ts'
import { Retention } from './retention.ts'
import { SlabPool } from './slab.ts'
import { StoppableWaits } from './stoppable-waits.ts'
import {
  type LineTime,
  type ReadPosition,
  sizeOf,
  type TailedFile,
  type TailHooks,
  type TailOptions,
} from './tailed-file.ts'
import { unreadSince } from './unread.ts'

const chunkBytes = 64 * 1024
const beatMs = 1000

export class Tailer<State> {
  readonly pool: SlabPool
  readonly #options: TailOptions
  readonly #hooks: TailHooks<State>
  readonly #signal: AbortSignal
  readonly #replaces: boolean
  readonly #state: ProgressState
  readonly #checkpoints: Checkpoints
  readonly #writer: CheckpointWriter
  readonly #waits: StoppableWaits
  readonly #registry: FileRegistry<State>
  readonly #reader: FileReader<State>
  readonly #retention: Retention<State>
  readonly #discovery: Finder
  #stopped = false
  #isFirst = false
  #beats = 0
  #lastSweep = 0

  constructor(
    options: TailOptions,
    hooks: TailHooks<State>,
    context: {
      readonly events: ComponentEvents
      readonly logger: Logger
      readonly stopping: AbortSignal
      /** Whether it replaces a tailer of the same component that has just ended. */
      readonly replaces?: boolean
    },
  ) {
    const { events, logger } = context
    this.#options = options
    this.#hooks = hooks
    this.#signal = context.stopping
    this.#replaces = context.replaces === true && !options.ignoreCheckpoints
    const capacity = Math.max(chunkBytes, options.maxLineBytes + options.delimiter.length + 1)
    this.pool = options.pool !== undefined && options.pool.capacity >= capacity ? options.pool : new SlabPool(capacity)
    this.#checkpoints = new Checkpoints(options.dataDir, options.componentId, {
      ignoreOlderMs: options.ignoreOlderMs,
      ignoreAll: options.ignoreCheckpoints,
    })
    const reports = new TailReports(options.fileTag, events, logger)
    this.#state = { stopping: false, inFlight: 0, moved: () => this.#writer.moved() }
    this.#writer = new CheckpointWriter(
      this.#checkpoints,
      () => this.#state.inFlight > 0,
      (count) => events.count('checkpoints_total', count),
      (error) => reports.unwritable(options.dataDir, error),
    )
    this.#waits = new StoppableWaits(this.#signal, logger)
    const { reads } = options
    const canShare = reads?.pool === this.pool && options.isReadBoundExact !== true
    this.#registry = new FileRegistry<State>(
      options,
      {
        opened: (file) => {
          file.state = hooks.opened(file)
          this.#reader.begin(file)
        },
        news: (file) => this.#reader.mark(file),
        closing: (file) => {
          this.#retention.measure(file)
          this.#reader.forget(file)
        },
        rescan: (directory) => this.#discovery.rescan(directory),
      },
      {
        events,
        logger,
        reports,
        checkpoints: this.#checkpoints,
        progressState: this.#state,
        reads: canShare ? reads : undefined,
      },
    )
    const registry = this.#registry
    this.#reader = new FileReader(options, hooks, {
      pool: this.pool,
      registry,
      reports,
      waits: this.#waits,
      events,
      stopping: this.#signal,
      look: (directory) => this.#discovery.look(directory),
    })
    this.#retention = new Retention(options, hooks, { registry, reader: this.#reader, reports, events })
    const found: DiscoveryHooks = {
      listed: (directory, files, watched) => registry.listed(directory, files, watched),
      changed: (path) => registry.changed(path),
      busy: (directory, busy) => this.#reader.setBusy(directory, busy),
      failed: (what, path, error) => reports.failedToFind(what, path, error),
    }
    this.#discovery = options.find?.(options.rules, found) ?? new Discovery(options.rules, found, options.files)
  }

  /** Applies the folder rules again, to one folder and its subfolders or to all. */
  reconsider(directory?: string): void {
    this.#discovery.reconsider(directory)
    this.#reader.releaseHeld()
  }

  /** Whether it began with no position of an earlier run. */
  get isFirst(): boolean {
    return this.#isFirst
  }

  /** Stops reading files below a folder. */
  leave(directory: string): void {
    this.#discovery.leave(directory)
  }

  /** Reads until `stopping` aborts, or, if `stopAtEnd` is set, until all files are at their end. */
  async run(): Promise<void> {
    const onAbort = () => {
      this.#state.stopping = true
      this.#reader.wake()
      this.#waits.abandon()
    }
    if (this.#signal.aborted) onAbort()
    this.#signal.addEventListener('abort', onAbort)
    const beat = setInterval(() => this.#onBeat(), beatMs)
    try {
      // Loads no earlier, because a replaced source writes until it has ended.
      this.#checkpoints.load()
      this.#isFirst = !this.#replaces && this.#checkpoints.size === 0
      const inherited = takeProgress(this.#options.dataDir, this.#options.componentId)
      if (this.#replaces) this.#registry.inherit(inherited)
      this.#discovery.sweep()
      this.#registry.start()
      this.#lastSweep = Date.now()
      await this.#reader.run()
      for (const file of [...this.#registry.files()]) {
        const hooks = this.#hooks
        await this.#waits.unlessStopping(hooks.stopped === undefined ? hooks.closed(file) : hooks.stopped(file))
      }
    } finally {
      clearInterval(beat)
      this.#signal.removeEventListener('abort', onAbort)
      this.#discovery.close()
      await this.#reader.stop()
      const { dataDir, componentId } = this.#options
      leaveProgress(
        dataDir,
        componentId,
        [...this.#registry.files()].map((file) => file.progress),
      )
      this.#registry.closeDescriptors()
      this.#stopped = true
      await this.#writer.stop()
    }
  }

  /** Write time of the oldest unread line, in ms; undefined if there is none. Checks only files with unread data. */
  oldestUnread(timeOf: LineTime): number | undefined {
    let oldest: number | undefined
    for (const file of this.#reader.filesWithNews()) {
      const time = this.#unreadSince(file, timeOf)
      if (time !== undefined && (oldest === undefined || time < oldest)) oldest = time
    }
    return oldest
  }

  /** The selected open files, with their sizes and the time of the oldest unread line in each. */
  readPositions(wanted: (file: TailedFile<State>) => boolean, timeOf: LineTime): ReadPosition<State>[] {
    return [...this.#registry.files()]
      .filter((file) => !file.gzip && wanted(file))
      .map((file) => ({ file, size: sizeOf(file), unreadSince: this.#unreadSince(file, timeOf) }))
  }

  #unreadSince(file: TailedFile<State>, timeOf: LineTime): number | undefined {
    return this.#stopped ? undefined : unreadSince(file, timeOf, this.pool, this.#options)
  }

  #onBeat(): void {
    if (this.#stopped || this.#signal.aborted) return
    const now = Date.now()
    this.#beats++
    this.#discovery.beat(now)
    if (now - this.#lastSweep >= this.#options.sweepMs) {
      this.#lastSweep = now
      this.#discovery.sweep()
      for (const file of [...this.#registry.files()]) this.#registry.verify(file)
    }
    this.#registry.retryWaiting()
    for (const file of [...this.#registry.files()]) this.#registry.checkPath(file)
    this.#reader.requestTick()
    this.#retention.makeRoom()
    for (const file of [...this.#registry.files()]) this.#retention.consider(file, now)
    const all = this.#beats % (idleMs / beatMs) === 0
    for (const file of this.#registry.files()) {
      this.#retention.measure(file)
      // Polled files have their own timer.
      if (all || file.goneSince !== undefined) this.#reader.mark(file)
      else if (!this.#reader.isPolled(file) && (file.unwatched || now - file.lastData < idleMs)) this.#reader.mark(file)
    }
    this.#checkpoints.prune((fingerprint) => this.#registry.isWanted(fingerprint), now)
    if (this.#checkpoints.changed) this.#writer.moved()
    this.#reader.wake()
  }
}
