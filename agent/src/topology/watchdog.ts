// Detects a blocked event loop: a program that computes for seconds, a disk that does not respond, or a machine that gives the
// process no CPU time. Meanwhile, no events move and no probe gets a response. Afterwards, the agent logs the duration and the cause.
// /health fails for a while only if the process itself computed for too long, because a restart would not make the disk or the
// machine faster.

import type { Logger } from '../telemetry/logger.ts'
import type { HistogramSeries, Metrics } from '../telemetry/metrics.ts'

const beatMs = 500
/** Delay of a timer that counts as a stall. */
const stallMs = 1000
/** Processor time in stalls, per minute, that makes the agent unhealthy. */
const boundMs = 20_000
const windowMs = 60_000

export interface WatchdogOptions {
  readonly logger: Logger
  readonly metrics: Metrics
  /** Id of the component with the longest uninterrupted use of the thread since the last call, if that was long. */
  readonly culprit: () => string | undefined
}

export class Watchdog implements Disposable {
  readonly #options: WatchdogOptions
  /** The processor time of each stall, at most its duration. */
  readonly #stalls: { readonly end: number; readonly busyMs: number }[] = []
  readonly #seconds: HistogramSeries
  readonly #timer: NodeJS.Timeout
  #last = performance.now()
  #cpuMs = cpuMs()

  constructor(options: WatchdogOptions) {
    this.#options = options
    this.#seconds = options.metrics.histogram('event_loop_stall_seconds')
    this.#timer = setInterval(() => this.#beat(), beatMs).unref()
  }

  #beat(): void {
    const now = performance.now()
    const late = now - this.#last - beatMs
    const cpu = cpuMs()
    const culprit = this.#options.culprit()
    if (late >= stallMs) {
      // On a busy machine, even a short computation takes long, so only CPU time counts.
      const busyMs = Math.min(late, cpu - this.#cpuMs)
      if (busyMs >= stallMs) this.#stalls.push({ end: now, busyMs })
      this.#seconds.observe(late / 1000)
      this.#options.logger.warn(
        {
          stalled_ms: Math.round(late),
          // A small value means that the process waited for a disk, or got no CPU time.
          cpu_ms: Math.round(cpu - this.#cpuMs),
          ...(culprit === undefined ? {} : { component_id: culprit }),
        },
        'The event loop was blocked; no events moved and no probe was answered meanwhile.',
      )
    }
    this.#last = now
    this.#cpuMs = cpu
    while (this.#stalls[0] !== undefined && this.#stalls[0].end < now - windowMs) this.#stalls.shift()
  }

  /** Why the agent is unhealthy; undefined if the loop runs normally. */
  get trouble(): string | undefined {
    // A probe may be handled before the watchdog's timer.
    const now = performance.now()
    const pending = now - this.#last - beatMs
    let ms = pending >= stallMs ? Math.min(pending, cpuMs() - this.#cpuMs) : 0
    for (const { end, busyMs } of this.#stalls) if (end >= now - windowMs) ms += busyMs
    if (ms < boundMs) return undefined
    return `Computations blocked the event loop for ${Math.round(ms / 1000)} seconds of the last minute.`
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
