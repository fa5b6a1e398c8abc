// Keeps repeated messages of a component from flooding the log. The first message is written, the second is announced as suppressed, and
// at the end of the time window the log contains the number of suppressed messages.

import { fact } from './facts.ts'
import type { Logger } from './logger.ts'

type Level = 'error' | 'warn' | 'info' | 'debug'

interface Window {
  suppressed: number
  timer: NodeJS.Timeout
}

/** The limit for the messages of one component. */
export class RepetitionLimit {
  readonly #windowMs: number
  readonly #windows = new Map<string, Window>()

  /** @param windowMs time window for each message; 0 disables the limit */
  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** @param key distinguishes messages with the same text */
  log(logger: Logger, level: Level, fields: object, message: string, key = message): void {
    if (this.#windowMs === 0) {
      logger[level](fields, message)
      return
    }
    if (!logger.isLevelEnabled(level)) return
    const window = this.#windows.get(key)
    if (window === undefined) {
      const timer = setTimeout(() => this.#end(logger, level, message, key), this.#windowMs).unref()
      this.#windows.set(key, { suppressed: 0, timer })
      logger[level](fields, message)
      return
    }
    window.suppressed++
    if (window.suppressed === 1) {
      logger[level]({ suppressed_message: fact(message) }, 'The message is being suppressed to avoid flooding.')
    }
  }

  #end(logger: Logger, level: Level, message: string, key: string): void {
    const suppressed = this.#windows.get(key)?.suppressed ?? 0
    this.#windows.delete(key)
    if (suppressed > 0) {
      logger[level]({ suppressed_message: fact(message), times: suppressed }, 'The message has been suppressed.')
    }
  }

  /** Stops all timers. */
  close(): void {
    for (const window of this.#windows.values()) clearTimeout(window.timer)
    this.#windows.clear()
  }
}
