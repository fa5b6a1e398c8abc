// A queue of keys to process: each key once, with at most one worker; a key added during processing is processed again. Failed
// keys wait longer each time, within a common budget; user changes take precedence over periodic checks, which never occupy every
// worker. If keys belong to lines, such as one per namespace, the lines take turns. Hand-written, because @kubernetes/client-node has
// no such queue.

import { doubledMs, systemClock, TokenBucket } from '@penstock/agent/program'

export interface QueueLines {
  of(key: string): string
  /** Maximum number of keys of one line in process. */
  readonly maxActive: number
}

export interface WorkQueueOptions {
  readonly lines?: QueueLines
  /** Maximum number of keys of priority `resync` in process, so that a user change always finds a worker; no limit if not given. */
  readonly maxResyncs?: number
  /** Wait after the first failure; doubled with each. */
  readonly minDelayMs?: number
  readonly maxDelayMs?: number
}

export interface RetryLimits {
  readonly minMs?: number | undefined
  /** Limit of the key's own wait. */
  readonly maxMs?: number | undefined
}

export type Priority = 'user' | 'resync'

export class WorkQueue {
  readonly #options: Required<WorkQueueOptions>
  readonly #bucket = new TokenBucket(10, 100)
  /** Waiting keys in order, by priority; and when each was added. */
  readonly #ready: Readonly<Record<Priority, Ready>>
  readonly #active = new Map<string, number>()
  readonly #activeInLine = new Map<string, number>()
  readonly #activeResyncs = new Set<string>()
  /** Keys added while a worker processes them. */
  readonly #again = new Map<string, Priority>()
  readonly #failures = new Map<string, number>()
  readonly #delayed = new Map<string, { readonly at: number; readonly cancel: () => void }>()
  readonly #workers: ((key: string | undefined) => void)[] = []
  #closed = false
  /** For metrics. */
  readonly counts = { adds: 0, retries: 0 }
  onQueued: ((seconds: number) => void) | undefined

  constructor(options: WorkQueueOptions = {}) {
    this.#options = {
      lines: options.lines ?? { of: () => '', maxActive: Number.POSITIVE_INFINITY },
      maxResyncs: options.maxResyncs ?? Number.POSITIVE_INFINITY,
      minDelayMs: options.minDelayMs ?? 5,
      maxDelayMs: options.maxDelayMs ?? 1_000_000,
    }
    const { lines } = this.#options
    this.#ready = { user: new Ready(lines), resync: new Ready(lines) }
  }

  get depth(): number {
    return this.#ready.user.size + this.#ready.resync.size
  }

  /** Number of delayed keys. */
  get delayed(): number {
    return this.#delayed.size
  }

  get active(): ReadonlyMap<string, number> {
    return this.#active
  }

  /** Whether no key is waiting, in process or delayed. */
  get idle(): boolean {
    return this.depth === 0 && this.#active.size === 0 && this.#delayed.size === 0
  }

  add(key: string, priority: Priority = 'user'): void {
    if (this.#closed) return
    if (this.#active.has(key)) {
      if (this.#again.get(key) !== 'user') this.#again.set(key, priority)
      return
    }
    if (this.#ready.user.has(key)) return
    const since = this.#ready.resync.get(key)
    if (since !== undefined && priority === 'resync') return
    this.#ready.resync.delete(key)
    this.counts.adds++
    this.#ready[priority].set(key, since ?? systemClock.now())
    this.#hand()
  }

  /** Adds a key after a delay; the earlier of two delays applies. */
  addAfter(key: string, delayMs: number, priority: Priority = 'user'): void {
    if (this.#closed) return
    if (delayMs <= 0) {
      this.add(key, priority)
      return
    }
    const at = systemClock.now() + delayMs
    const known = this.#delayed.get(key)
    if (known !== undefined) {
      if (known.at <= at) return
      known.cancel()
    }
    const cancel = systemClock.after(delayMs, () => {
      this.#delayed.delete(key)
      this.add(key, priority)
    })
    this.#delayed.set(key, { at, cancel })
  }

  /** How often a key has failed since it last succeeded. */
  failuresOf(key: string): number {
    return this.#failures.get(key) ?? 0
  }

  /** Adds a key that failed; returns the wait. */
  retry(key: string, { minMs = 0, maxMs = this.#options.maxDelayMs }: RetryLimits = {}): number {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.counts.retries++
    const own = doubledMs(failures, this.#options.minDelayMs, maxMs)
    const delayMs = Math.max(own, this.#bucket.takeAfterMs(), minMs)
    this.addAfter(key, delayMs, 'resync')
    return delayMs
  }

  /** The key succeeded: its next failure counts as the first. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /** The next key to process; undefined when the queue is closed. */
  next(): Promise<string | undefined> {
    const key = this.#take()
    if (key !== undefined || this.#closed) return Promise.resolve(key)
    return new Promise((resolve) => this.#workers.push(resolve))
  }

  /** The worker has finished a key. */
  done(key: string): void {
    this.#active.delete(key)
    this.#activeResyncs.delete(key)
    const line = this.#options.lines.of(key)
    const active = (this.#activeInLine.get(line) ?? 1) - 1
    if (active > 0) this.#activeInLine.set(line, active)
    else this.#activeInLine.delete(line)
    const again = this.#again.get(key)
    this.#again.delete(key)
    if (again !== undefined) this.add(key, again)
    // A key that waited for its line may continue.
    this.#hand()
  }

  /** From now on, `next` returns no key. */
  close(): void {
    this.#closed = true
    for (const { cancel } of this.#delayed.values()) cancel()
    this.#delayed.clear()
    this.#ready.user.clear()
    this.#ready.resync.clear()
    for (const worker of this.#workers.splice(0)) worker(undefined)
  }

  #take(): string | undefined {
    const { lines, maxResyncs } = this.#options
    const isFree = (line: string) => (this.#activeInLine.get(line) ?? 0) < lines.maxActive
    for (const priority of ['user', 'resync'] as const) {
      if (priority === 'resync' && this.#activeResyncs.size >= maxResyncs) continue
      const taken = this.#ready[priority].take(isFree)
      if (taken === undefined) continue
      const { key, line, since } = taken
      const at = systemClock.now()
      this.onQueued?.((at - since) / 1000)
      this.#active.set(key, at)
      if (priority === 'resync') this.#activeResyncs.add(key)
      this.#activeInLine.set(line, (this.#activeInLine.get(line) ?? 0) + 1)
      return key
    }
    return undefined
  }

  #hand(): void {
    while (this.#workers.length > 0) {
      const key = this.#take()
      if (key === undefined) return
      this.#workers.shift()?.(key)
    }
  }
}

/**
 * Waiting keys, each with the time when it was added. The lines take turns; within a line, and with only one line, the oldest goes first.
 */
class Ready {
  readonly #lines: QueueLines
  readonly #waiting = new Map<string, Map<string, number>>()
  #size = 0

  constructor(lines: QueueLines) {
    this.#lines = lines
  }

  get size(): number {
    return this.#size
  }

  get(key: string): number | undefined {
    return this.#waiting.get(this.#lines.of(key))?.get(key)
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  set(key: string, since: number): void {
    const line = this.#lines.of(key)
    const waiting = this.#waiting.get(line) ?? new Map<string, number>()
    if (waiting.size === 0) this.#waiting.set(line, waiting)
    if (!waiting.has(key)) this.#size++
    waiting.set(key, since)
  }

  delete(key: string): void {
    const line = this.#lines.of(key)
    const waiting = this.#waiting.get(line)
    if (waiting?.delete(key) !== true) return
    this.#size--
    if (waiting.size === 0) this.#waiting.delete(line)
  }

  clear(): void {
    this.#waiting.clear()
    this.#size = 0
  }

  take(isFree: (line: string) => boolean): { key: string; line: string; since: number } | undefined {
    for (const [line, waiting] of this.#waiting) {
      if (!isFree(line)) continue
      for (const [key, since] of waiting) {
        this.delete(key)
        if (waiting.size > 0) {
          this.#waiting.delete(line)
          this.#waiting.set(line, waiting)
        }
        return { key, line, since }
      }
    }
    return undefined
  }
}
