// Polls the files whose changes inotify does not report: files in folders with many writes, and files behind links.

import { nextPoll, pollIntervalMs, timerSlackMs } from './polling.ts'
import type { TailedFile } from './tailed-file.ts'

/** A file without new bytes for this long is idle. */
export const idleMs = 10_000

interface PollerHooks<State> {
  /** The poll of a file is due. */
  due(file: TailedFile<State>): void
  /** All polls due at one time have been reported. */
  polled(): void
  /** A file in a busy folder has become idle: its writer may have switched to another file. */
  look(directory: string): void
  /** A file behind a link has become idle. */
  checkPath(file: TailedFile<State>): void
}

export class Poller<State> {
  readonly #hooks: PollerHooks<State>
  /** Directories that discovery does not watch, because they have many writes. */
  readonly #busy = new Set<string>()
  /** Completely read files that wait for their next poll. */
  readonly #polled = new Set<TailedFile<State>>()
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY

  constructor(hooks: PollerHooks<State>) {
    this.#hooks = hooks
  }

  setBusy(directory: string, busy: boolean): void {
    if (busy) this.#busy.add(directory)
    else this.#busy.delete(directory)
  }

  has(file: TailedFile<State>): boolean {
    return this.#polled.has(file)
  }

  forget(file: TailedFile<State>): void {
    this.#polled.delete(file)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** Schedules the next poll of a file that was read to its end or must wait. */
  schedule(file: TailedFile<State>): void {
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
    if (file.pollAt < this.#timerAt) this.#setTimer(file.pollAt, now)
    const isStalled = file.hadNews && bytes <= 0
    file.hadNews = bytes > 0
    file.isStalled = bytes <= 0
    // The writer may have switched to another file.
    if (isStalled && this.#busy.has(file.directory)) this.#hooks.look(file.directory)
    else if (isStalled) this.#hooks.checkPath(file)
  }

  /**
   * Whether the tailer must poll a file because inotify does not report its changes. For an idle file behind a link, the beat suffices.
   */
  #isPolled(file: TailedFile<State>): boolean {
    return this.#busy.has(file.directory) || (file.unwatched && Date.now() - file.lastData < idleMs)
  }

  #setTimer(at: number, now: number): void {
    clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timer = setTimeout(this.#poll, at - now)
  }

  readonly #poll = (): void => {
    this.#timerAt = Number.POSITIVE_INFINITY
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
      this.#hooks.due(file)
    }
    if (next < Number.POSITIVE_INFINITY) this.#setTimer(next, now)
    this.#hooks.polled()
  }
}
