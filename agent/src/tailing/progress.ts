// How far a file has been delivered. Positions are passed on in order and may be answered in any order; the checkpoint moves
// only past what has been answered without a gap.

import { type BatchStatus, Finalizer } from '../event/finalizer.ts'
import type { Checkpoints } from './checkpoint.ts'
import type { Fingerprint } from './fingerprint.ts'

/** State that the files of one source share. */
export interface ProgressState {
  /** The agent is stopping: what fails from now on is read again after the start. */
  stopping: boolean
  /** Batches that were passed on and not answered. */
  inFlight: number
  /** A checkpoint has moved. */
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
  /** Something was given up, and is to be read again. */
  #lost = false
  /** Everything before has been delivered. */
  position: number
  /** State for the next reader; only a reader that replaces another one in the same process gets it. */
  note: object | undefined

  constructor(fingerprint: Fingerprint, position: number, checkpoints: Checkpoints, state: ProgressState) {
    this.fingerprint = fingerprint
    this.position = position
    this.#checkpoints = checkpoints
    this.#state = state
    checkpoints.set(fingerprint, position)
  }

  /**
   * The finalizer for events after which everything before `position` has been passed on.
   * @param ended called when all of the events have ended
   */
  handOn(position: number, ended?: (status: BatchStatus) => void): Finalizer {
    const pending: Pending = { position, answered: false }
    this.#pending.push(pending)
    this.#state.inFlight++
    return new Finalizer((status: BatchStatus) => {
      ended?.(status)
      this.#state.inFlight--
      // An agent that is stopping gives up what it could not deliver: those lines are to be read again.
      if (status === 'errored' && this.#state.stopping) {
        this.#lost = true
        return
      }
      pending.answered = true
      this.#advance()
    })
  }

  /** Nothing is to be passed on up to `position`. */
  skip(position: number): void {
    const last = this.#pending.at(-1)
    if (last !== undefined ? last.position >= position : this.position >= position) return
    this.#pending.push({ position, answered: true })
    this.#advance()
  }

  /** The content is gone: what is still in flight moves no checkpoint. */
  close(): void {
    this.#closed = true
  }

  /** Everything before has been passed on; undefined if some of it must be passed on again. */
  get reach(): number | undefined {
    return this.#lost || this.#closed ? undefined : (this.#pending.at(-1)?.position ?? this.position)
  }

  /** From now on, events in flight move the checkpoints of the tailer that continues with the file. */
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

/** How far the files of tailers that have ended were passed on, for those that take their place. */
const left = new Map<string, ReadonlyMap<Fingerprint, FileProgress>>()

const keyOf = (dataDir: string, componentId: string) => `${dataDir}\u0000${componentId}`

export function leaveProgress(dataDir: string, componentId: string, files: Iterable<FileProgress>): void {
  left.set(keyOf(dataDir, componentId), new Map(Array.from(files, (progress) => [progress.fingerprint, progress])))
}

/** The rest; returns it once. */
export function takeProgress(dataDir: string, componentId: string): ReadonlyMap<Fingerprint, FileProgress> | undefined {
  const key = keyOf(dataDir, componentId)
  const found = left.get(key)
  left.delete(key)
  return found
}
