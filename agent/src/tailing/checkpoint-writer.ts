// Decides when checkpoints are written: half a second after a change, and at once after the stop, because the process may
// then exit at any moment.

import type { Checkpoints } from './checkpoint.ts'

/** Delay from a position change to its write, which limits how many lines a crash duplicates. */
const delayMs = 500
const lateDelayMs = 200

export class CheckpointWriter {
  readonly #checkpoints: Checkpoints
  readonly #isInFlight: () => boolean
  readonly #written: (count: number) => void
  readonly #failed: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  /** `stopping`: changed positions are only written at the end of the stop. */
  #state: 'running' | 'stopping' | 'stopped' = 'running'
  #lastLateWrite = 0

  /**
   * @param isInFlight whether answers are still outstanding @param written called with the number of entries after a
   * write
   */
  constructor(
    checkpoints: Checkpoints,
    isInFlight: () => boolean,
    written: (count: number) => void,
    failed: (error: unknown) => void,
  ) {
    this.#checkpoints = checkpoints
    this.#isInFlight = isInFlight
    this.#written = written
    this.#failed = failed
  }

  /** Called when a position has moved. */
  moved(): void {
    if (this.#state === 'stopped') this.#writeLate()
    if (this.#state !== 'running') return
    this.#timer ??= setTimeout(() => {
      this.#writing = this.#write().finally(() => {
        this.#timer = undefined
        if (this.#checkpoints.changed) this.moved()
      })
    }, delayMs)
  }

  /** Writes pending changes; later changes are written at once. */
  async stop(): Promise<void> {
    this.#state = 'stopping'
    clearTimeout(this.#timer)
    await this.#writing
    await this.#write()
    this.#state = 'stopped'
    this.#writeLate()
  }

  #writeLate(): void {
    const now = Date.now()
    if (!this.#checkpoints.owned || (this.#isInFlight() && now - this.#lastLateWrite < lateDelayMs)) return
    this.#lastLateWrite = now
    try {
      const count = this.#checkpoints.writeSync()
      if (count > 0) this.#written(count)
    } catch (error) {
      this.#failed(error)
    }
  }

  async #write(): Promise<void> {
    try {
      const count = await this.#checkpoints.write()
      if (count > 0) this.#written(count)
    } catch (error) {
      this.#failed(error)
    }
  }
}
