// Keys to work on: each once, at most one worker a key, those added while they are worked on come again afterwards. What failed
// waits longer each time, within a budget for all; what users changed goes before what is only looked at again.

import { TokenBucket } from './token-bucket.ts'

export interface WorkQueueOptions {
  readonly now?: () => number
  /** Wait after the first failure; doubled with each. */
  readonly leastDelayMs?: number
  readonly mostDelayMs?: number
}

export type Priority = 'user' | 'resync'

export class WorkQueue {
  readonly #options: Required<WorkQueueOptions>
  readonly #bucket = new TokenBucket(10, 100)
  /** Waiting keys in their order, by priority; when each was added. */
  readonly #ready: Readonly<Record<Priority, Map<string, number>>> = { user: new Map(), resync: new Map() }
  readonly #active = new Map<string, number>()
  /** Added while they were worked on. */
  readonly #again = new Map<string, Priority>()
  readonly #failures = new Map<string, number>()
  readonly #delayed = new Map<string, { readonly at: number; readonly timer: NodeJS.Timeout }>()
  readonly #workers: ((key: string | undefined) => void)[] = []
  #closed = false
  /** For metrics. */
  readonly counts = { adds: 0, retries: 0 }
  onQueued: ((seconds: number) => void) | undefined

  constructor(options: WorkQueueOptions = {}) {
    this.#options = {
      now: options.now ?? (() => performance.now()),
      leastDelayMs: options.leastDelayMs ?? 5,
      mostDelayMs: options.mostDelayMs ?? 1_000_000,
    }
  }

  get depth(): number {
    return this.#ready.user.size + this.#ready.resync.size
  }

  /** How many wait for their time. */
  get delayed(): number {
    return this.#delayed.size
  }

  get active(): ReadonlyMap<string, number> {
    return this.#active
  }

  /** Whether nothing waits, runs or is going to. */
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
    this.#ready[priority].set(key, since ?? this.#options.now())
    this.#hand()
  }

  /** Adds a key later; of two times the earlier holds. */
  addAfter(key: string, delayMs: number, priority: Priority = 'user'): void {
    if (this.#closed) return
    if (delayMs <= 0) {
      this.add(key, priority)
      return
    }
    const at = this.#options.now() + delayMs
    const known = this.#delayed.get(key)
    if (known !== undefined) {
      if (known.at <= at) return
      clearTimeout(known.timer)
    }
    const timer = setTimeout(
      () => {
        this.#delayed.delete(key)
        this.add(key, priority)
      },
      // The longest that a timer takes.
      Math.min(delayMs, 2 ** 31 - 1),
    )
    this.#delayed.set(key, { at, timer })
  }

  /** Adds a key that failed; gives the wait. */
  retry(key: string, leastMs = 0): number {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.counts.retries++
    const own = Math.min(this.#options.mostDelayMs, this.#options.leastDelayMs * 2 ** Math.min(failures, 40))
    const delayMs = Math.max(own, this.#bucket.takeAfterMs(), leastMs)
    this.addAfter(key, delayMs, 'resync')
    return delayMs
  }

  /** The key went well: its next failure is a first one. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /** The next key to work on; undefined when the queue is closed. */
  next(): Promise<string | undefined> {
    const key = this.#take()
    if (key !== undefined || this.#closed) return Promise.resolve(key)
    return new Promise((resolve) => this.#workers.push(resolve))
  }

  /** The worker has finished with a key. */
  done(key: string): void {
    this.#active.delete(key)
    const again = this.#again.get(key)
    if (again === undefined) return
    this.#again.delete(key)
    this.add(key, again)
  }

  /** No key is handed out any more. */
  close(): void {
    this.#closed = true
    for (const { timer } of this.#delayed.values()) clearTimeout(timer)
    this.#delayed.clear()
    this.#ready.user.clear()
    this.#ready.resync.clear()
    for (const worker of this.#workers.splice(0)) worker(undefined)
  }

  #take(): string | undefined {
    for (const waiting of [this.#ready.user, this.#ready.resync]) {
      for (const [key, since] of waiting) {
        waiting.delete(key)
        const now = this.#options.now()
        this.onQueued?.((now - since) / 1000)
        this.#active.set(key, now)
        return key
      }
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
