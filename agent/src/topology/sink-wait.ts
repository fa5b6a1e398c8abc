// How long the sources of a sink have waited for it: its buffer is full and accepts nothing. A wait of some seconds is reported,
// because the source then also sends nothing to its other sinks.

const reportAfterMs = 5000

export class SinkWait {
  /** Called when a wait becomes long, and when the buffer accepts events after such a wait. */
  readonly #report: (isWaiting: boolean) => void
  #writers = 0
  /** Since when the buffer has accepted nothing. */
  #since = 0
  #isReported = false
  #timer: NodeJS.Timeout | undefined

  constructor(report: (isWaiting: boolean) => void) {
    this.#report = report
  }

  /** Seconds since the full buffer last accepted a write; 0 if none waits. */
  get seconds(): number {
    return this.#writers === 0 ? 0 : (performance.now() - this.#since) / 1000
  }

  /** Follows a write until the buffer has accepted it. */
  add(write: Promise<void>): void {
    if (this.#writers++ === 0) this.#since = performance.now()
    this.#watch(reportAfterMs)
    const ended = () => this.#ended()
    void write.then(ended, ended)
  }

  #ended(): void {
    this.#writers--
    this.#since = performance.now()
    if (!this.#isReported) return
    this.#isReported = false
    this.#report(false)
    if (this.#writers > 0) this.#watch(reportAfterMs)
  }

  /** Starts a timer unless one runs: a busy sink has many short waits, which need no timer each. */
  #watch(ms: number): void {
    this.#timer ??= setTimeout(() => this.#look(), ms).unref()
  }

  #look(): void {
    this.#timer = undefined
    if (this.#writers === 0 || this.#isReported) return
    const restMs = reportAfterMs - (performance.now() - this.#since)
    if (restMs > 0) {
      this.#watch(restMs)
      return
    }
    this.#isReported = true
    this.#report(true)
  }
}
