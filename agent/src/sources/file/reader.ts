// Reads the lines of files and sends each as an event, or as part of a group if a rule joins lines. The position of a file never
// passes the first line of an incomplete group.

import { hostname } from 'node:os'
import type { OriginTags, Source, SourceContext } from '../../component.ts'
import { logBatch } from '../../event/batch.ts'
import type { LogEvent } from '../../event/log.ts'
import { setPath } from '../../event/path.ts'
import type { Timestamp } from '../../event/timestamp.ts'
import type { Value, ValueObject } from '../../event/value.ts'
import { LineBatch, Lines } from '../../tailing/lines.ts'
import { MultilineAggregator, type MultilineRule } from '../../tailing/multiline.ts'
import type { Slab } from '../../tailing/slab.ts'
import { Tailer } from '../../tailing/tail.ts'
import { hasUnread, type TailedFile, type TailHooks, type TailOptions } from '../../tailing/tailed-file.ts'
import { FileShape, type Layout } from './shape.ts'

export interface FileState {
  /** One object for all batches, because counters are looked up by its identity. */
  readonly origin: OriginTags
  readonly shape: FileShape
  readonly groups: MultilineAggregator<Value[]> | undefined
}

type Path = readonly (string | number)[]

export interface FileReaderOptions {
  readonly tail: TailOptions
  readonly layout: Layout
  /** Fields for the host and the path of the file. */
  readonly keys: { readonly host: Path | undefined; readonly file: Path | undefined }
  readonly rule: MultilineRule | undefined
}

export class FileSourceReader implements Source, TailHooks<FileState> {
  readonly #options: FileReaderOptions
  readonly #context: SourceContext
  readonly #tailer: Tailer<FileState>
  readonly #host = hostname()
  /** Complete groups that have not been sent yet. */
  #complete: LogEvent[] = []
  /** Files with an incomplete group. */
  readonly #waiting = new Set<TailedFile<FileState>>()

  constructor(options: FileReaderOptions, context: SourceContext) {
    this.#options = options
    this.#context = context
    this.#tailer = new Tailer(options.tail, this, context)
  }

  async run(): Promise<void> {
    const { rule } = this.#options
    const periodMs = Math.min(1000, Math.max(20, (rule?.timeoutMs ?? 0) / 2))
    const timer = rule === undefined ? undefined : setInterval(() => this.#expireGroups(), periodMs)
    try {
      await this.#tailer.run()
    } finally {
      clearInterval(timer)
    }
  }

  #expireGroups(): void {
    const now = Date.now()
    for (const tailed of this.#waiting) {
      tailed.state.groups?.expire(now, () => hasUnread(tailed))
      if (tailed.state.groups?.pendingFrom !== undefined) continue
      this.#waiting.delete(tailed)
      // A full buffer delays the next read, but not this last group.
      void this.#sendGroups(tailed, tailed.offset)
    }
  }

  opened(tailed: TailedFile<FileState>): FileState {
    const { layout, keys, rule } = this.#options
    const constants: ValueObject = {}
    if (keys.file !== undefined) setPath(constants, keys.file, tailed.path)
    if (keys.host !== undefined) setPath(constants, keys.host, this.#host)
    setPath(constants, [this.#context.globals.logSchema.sourceTypeKey], 'file')
    const shape = new FileShape(constants, layout)
    const groups =
      rule === undefined
        ? undefined
        : new MultilineAggregator<Value[]>(rule, (text, [offset, time]) => {
            this.#complete.push(shape.make(text, offset as number, time as Timestamp))
          })
    return { origin: { file: tailed.path }, shape, groups }
  }

  lines(tailed: TailedFile<FileState>, slab: Slab): Promise<void> | undefined {
    const { shape, groups, origin } = tailed.state
    if (groups === undefined) {
      const lines = new Lines(slab, shape, this.#tailer.pool)
      const finalizer = tailed.progress.handOn(slab.end, () => lines.ended())
      const full = this.#context.output.send(new LineBatch(lines, 0, slab.count, finalizer), origin)
      lines.settle()
      return full
    }
    for (let line = 0; line < slab.count; line++) {
      const position = slab.base + (slab.starts[line] as number)
      groups.add(shape.text(slab, line), position, [position, slab.time], slab.time.ms)
    }
    if (groups.pendingFrom !== undefined) this.#waiting.add(tailed)
    return this.#sendGroups(tailed, slab.end)
  }

  closed(tailed: TailedFile<FileState>): Promise<void> | undefined {
    this.#waiting.delete(tailed)
    if (tailed.state.groups?.pendingFrom === undefined) return undefined
    tailed.state.groups.flush()
    return this.#sendGroups(tailed, tailed.offset)
  }

  #sendGroups(tailed: TailedFile<FileState>, position: number): Promise<void> | undefined {
    const safe = tailed.state.groups?.pendingFrom ?? position
    if (this.#complete.length === 0) {
      tailed.progress.skip(safe)
      return undefined
    }
    const events = this.#complete
    this.#complete = []
    return this.#context.output.send(logBatch(events, tailed.progress.handOn(safe)), tailed.state.origin)
  }
}
