// Reads compressed files one after the other, concurrently with the loop for uncompressed files.

import { gunzipFrom, type Taken } from './gzip.ts'
import type { TailReports } from './reports.ts'
import type { Slab, SlabPool } from './slab.ts'
import type { StoppableWaits } from './stoppable-waits.ts'
import type { TailedFile, TailHooks, TailOptions } from './tailed-file.ts'

interface Context<State> {
  readonly pool: SlabPool
  readonly hooks: TailHooks<State>
  readonly reports: TailReports
  readonly waits: StoppableWaits
  readonly signal: AbortSignal
  /** Passes on the whole lines of a chunk and moves the offset past them. */
  take(file: TailedFile<State>, slab: Slab, length: number): Promise<void> | undefined
  /** All queued files have been read. */
  ended(): void
}

export class GzipQueue<State> {
  readonly #options: TailOptions
  readonly #context: Context<State>
  readonly #queue: TailedFile<State>[] = []
  #task: Promise<void> | undefined

  constructor(options: TailOptions, context: Context<State>) {
    this.#options = options
    this.#context = context
  }

  /** Resolves when no file is being read; undefined if none is. */
  get task(): Promise<void> | undefined {
    return this.#task
  }

  push(file: TailedFile<State>): void {
    this.#queue.push(file)
    this.#task ??= this.#readAll().finally(() => {
      this.#task = undefined
      this.#context.ended()
    })
  }

  async #readAll(): Promise<void> {
    const { pool, hooks, reports, waits, signal } = this.#context
    for (let file = this.#queue.shift(); file !== undefined; file = this.#queue.shift()) {
      const current = file
      try {
        await gunzipFrom(current.descriptor, current.offset, pool, signal, (slab, length, last) =>
          this.#take(current, slab, length, last),
        )
        current.finished = true
        await waits.unlessStopping(hooks.closed(current))
      } catch (error) {
        if (signal.aborted) return
        reports.unread(current.path, error, 'Could not read a compressed file.')
      }
    }
  }

  #take(file: TailedFile<State>, slab: Slab, length: number, last: boolean): Taken {
    const { pool, hooks } = this.#context
    const before = file.offset
    if (file.closed) return { bytes: length, waiting: undefined }
    const waiting = length === 0 ? undefined : this.#context.take(file, slab, length)
    const bytes = file.offset - before
    if (!last || file.discarding || bytes === length) return { bytes, waiting: this.#waited(waiting) }
    // The last line has no delimiter.
    const rest = pool.take()
    slab.buffer.copy(rest.buffer, 0, bytes, length)
    rest.base = file.offset
    rest.time = slab.time
    rest.split(0, 0, this.#options.delimiter, this.#options.maxLineBytes)
    rest.addLast(0, length - bytes)
    file.offset = rest.end
    const lastWaiting = hooks.lines(file, rest)
    if (!rest.held) pool.give(rest)
    return { bytes: length, waiting: this.#waited(lastWaiting ?? waiting) }
  }

  #waited(promise: Promise<void> | undefined): Promise<void> | undefined {
    return promise === undefined ? undefined : this.#context.waits.unlessStopping(promise)
  }
}
