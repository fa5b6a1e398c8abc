// Decides how long a tailer keeps a deleted file, which files it closes for lack of space, and which it removes. Counts written and
// lost bytes.

import { fstatSync, unlinkSync } from 'node:fs'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import type { FileReader } from './reader.ts'
import type { FileRegistry } from './registry.ts'
import type { TailReports } from './reports.ts'
import { byAge, type LossReason, sizeOf, type TailedFile, type TailHooks, type TailOptions } from './tailed-file.ts'

/** A removed file is kept this long after its last line, because its writer may still have it open. */
const lingerMs = 2000

interface Context<State> {
  readonly registry: FileRegistry<State>
  readonly reader: FileReader<State>
  readonly reports: TailReports
  readonly events: ComponentEvents
}

export class Retention<State> {
  readonly #options: TailOptions
  readonly #hooks: TailHooks<State>
  readonly #registry: FileRegistry<State>
  readonly #reader: FileReader<State>
  readonly #reports: TailReports
  readonly #events: ComponentEvents

  constructor(options: TailOptions, hooks: TailHooks<State>, context: Context<State>) {
    this.#options = options
    this.#hooks = hooks
    this.#registry = context.registry
    this.#reader = context.reader
    this.#reports = context.reports
    this.#events = context.events
  }

  /** Closes or removes a file when it is time to. */
  consider(file: TailedFile<State>, now: number): void {
    if (file.goneSince !== undefined) this.#considerClosing(file, file.goneSince, now)
    else if (this.#options.removeAfterMs !== undefined) this.#considerRemoving(file, this.#options.removeAfterMs, now)
  }

  /** Closes files beyond the limit, the oldest first. */
  makeRoom(): void {
    const { maxRotatedFiles, isDiskFull } = this.#options
    if (maxRotatedFiles !== undefined) {
      for (const siblings of this.#registry.folders()) {
        if (siblings.size <= maxRotatedFiles) continue
        const rotated = [...siblings].filter((file) => isRotated(file) && file.offset < sizeOf(file))
        if (rotated.length <= maxRotatedFiles) continue
        rotated.sort(byAge)
        for (const file of rotated.slice(0, rotated.length - maxRotatedFiles)) this.#giveUp(file, 'rotated_files')
      }
    }
    if (isDiskFull?.() !== true) return
    // One file at a time, because each close may free enough space.
    const removed = [...this.#registry.files()].filter((file) => file.goneSince !== undefined && !file.gzip)
    const oldest = removed.filter((file) => file.offset < sizeOf(file)).sort(byAge)[0]
    if (oldest === undefined) return
    this.#giveUp(oldest, 'disk_pressure')
    this.#reader.finish(oldest)
  }

  /** Reports how much has been written since the last call. */
  measure(file: TailedFile<State>, isRead = this.#reader.isAtEnd(file)): void {
    if (this.#hooks.written === undefined || file.gzip) return
    const size = isRead ? file.readTo : sizeOf(file)
    if (size <= file.writtenTo) return
    this.#hooks.written(file, size - file.writtenTo)
    file.writtenTo = size
  }

  /** Closes a removed file that was read to its end, after its writer had time to close it. */
  #considerClosing(file: TailedFile<State>, goneSince: number, now: number): void {
    if (file.gzip) {
      if (file.finished) this.#reader.finish(file)
      return
    }
    const { rotateWaitMs } = this.#options
    if (rotateWaitMs !== undefined && now - goneSince >= rotateWaitMs) {
      this.#reportLoss(file, 'rotate_wait')
      this.#reader.finish(file)
      return
    }
    let size: number
    try {
      size = fstatSync(file.descriptor).size
    } catch {
      size = 0
    }
    const rest = size - file.offset
    // Bytes read beyond the offset are an incomplete line.
    const isRead = !this.#reader.isReady(file) && file.readTo === size
    const atEnd = rest <= 0 || (isRead && rest <= this.#options.maxLineBytes)
    if (atEnd && now - Math.max(goneSince, file.lastData) >= lingerMs) this.#reader.finish(file)
  }

  #considerRemoving(file: TailedFile<State>, afterMs: number, now: number): void {
    if (file.progress.position !== file.offset || now - file.lastData < afterMs) return
    try {
      if (!file.gzip && fstatSync(file.descriptor).size !== file.offset) return
      if (this.#options.confinement?.mayRemove(file.path) === false) return
      unlinkSync(file.path)
      this.#events.count('files_deleted_total', 1, this.#reports.tags(file))
    } catch (error) {
      this.#reports.unremovable(file.path, error)
    }
  }

  /** Stops reading a file whose rest is given up. */
  #giveUp(file: TailedFile<State>, reason: LossReason): void {
    const end = sizeOf(file)
    if (end <= file.offset) return
    this.#reportLoss(file, reason, end)
    this.#reader.delay(this.#hooks.closed(file))
    file.offset = end
    file.progress.skip(end)
    this.#reader.unmark(file)
  }

  #reportLoss(file: TailedFile<State>, reason: LossReason, end = sizeOf(file)): void {
    this.measure(file, false)
    const rest = end - file.offset
    if (rest > 0) this.#hooks.lost?.(file, rest, reason)
  }
}

/** Whether a file has no writer any more: it was removed, or has a second name. */
function isRotated(file: { readonly path: string; readonly goneSince: number | undefined; readonly gzip: boolean }) {
  return !file.gzip && (file.goneSince !== undefined || !file.path.endsWith('.log'))
}
