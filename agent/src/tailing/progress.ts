// How far a file has been delivered. Positions are passed on in order and may be answered in any order; the checkpoint moves
// past a position only when all earlier ones have been answered.

import { type BatchStatus, Finalizer } from '../event/finalizer.ts'
import type { Checkpoints } from './checkpoint.ts'
import type { Fingerprint } from './fingerprint.ts'

/** State shared by the files of one source. */
export interface ProgressState {
  /** Whether the agent is stopping: failed lines are then read again after the restart. */
  stopping: boolean
  /** Number of batches passed on but not answered. */
  inFlight: number
  /** Called when a checkpoint has moved. */
  moved(): void
}

interface Pending {
  readonly position: number
  answered: boolean
}

export class FileProgress {
  readonly fingerprint: Fingerprint
  #checkpoints: Checkpoints
  #state: ProgressState
  #pending: Pending[] = []
  #head = 0
  #closed = false
  /** Whether a batch failed and must be read again. */
  #lost = false
  /** Position before which everything has been delivered. */
  position: number
  /** State for the next reader; only a reader that replaces this one in the same process receives it. */
  note: object | undefined

  constructor(fingerprint: Fingerprint, position: number, checkpoints: Checkpoints, state: ProgressState) {
    this.fingerprint = fingerprint
    this.position = position
    this.#checkpoints = checkpoints
    this.#state = state
    checkpoints.set(fingerprint, position)
  }

  /**
   * The finalizer for events; when they end, everything before `position` has been passed on. @param ended called when
   * all of the events have ended
   */
  handOn(position: number, ended?: (status: BatchStatus) => void): Finalizer {
    const pending: Pending = { position, answered: false }
    this.#pending.push(pending)
    this.#state.inFlight++
    return new Finalizer((status: BatchStatus) => {
      ended?.(status)
      this.#state.inFlight--
      // A stopping agent gives up undelivered lines, and the next start reads them again.
      if (status === 'errored' && this.#state.stopping) {
        this.#lost = true
        return
      }
      pending.answered = true
      this.#advance()
    })
  }

  /** There are no lines to pass on up to `position`. */
  skip(position: number): void {
    const last = this.#pending.at(-1)
    if (last !== undefined ? last.position >= position : this.position >= position) return
    this.#pending.push({ position, answered: true })
    this.#advance()
  }

  /** The content was replaced: batches still in flight do not move its checkpoint. */
  close(): void {
    this.#closed = true
  }

  /** Position before which everything has been passed on; undefined if some of it must be passed on again. */
  get reach(): number | undefined {
    return this.#lost || this.#closed ? undefined : (this.#pending.at(-1)?.position ?? this.position)
  }

  /** Events in flight now move the checkpoints of the tailer that takes the file over. */
  passTo(checkpoints: Checkpoints, state: ProgressState): void {
    for (let index = this.#head; index < this.#pending.length; index++) {
      if ((this.#pending[index] as Pending).answered) continue
      this.#state.inFlight--
      state.inFlight++
    }
    this.#checkpoints = checkpoints
    this.#state = state
    checkpoints.set(this.fingerprint, this.position)
  }

  #advance(): void {
    let moved = false
    while (this.#head < this.#pending.length && (this.#pending[this.#head] as Pending).answered) {
      this.position = (this.#pending[this.#head++] as Pending).position
      moved = true
    }
    if (this.#head === this.#pending.length) {
      this.#pending.length = 0
      this.#head = 0
    } else if (this.#head >= 256) {
      this.#pending = this.#pending.slice(this.#head)
      this.#head = 0
    }
    if (!moved || this.#closed) return
    this.#checkpoints.set(this.fingerprint, this.position)
    this.#state.moved()
  }
}

/** Progress of ended tailers, for the tailers that replace them. */
const left = new Map<string, ReadonlyMap<Fingerprint, FileProgress>>()

const keyOf = (dataDir: string, componentId: string) => `${dataDir}\u0000${componentId}`

export function leaveProgress(dataDir: string, componentId: string, files: Iterable<FileProgress>): void {
  left.set(keyOf(dataDir, componentId), new Map(Array.from(files, (progress) => [progress.fingerprint, progress])))
}

/** Returns the progress of an ended tailer, once. */
export function takeProgress(dataDir: string, componentId: string): ReadonlyMap<Fingerprint, FileProgress> | undefined {
  const key = keyOf(dataDir, componentId)
  const found = left.get(key)
  left.delete(key)
  return found
}
