// The loop of every controller: keys from a queue, at most one worker per key, retries after failures. An error in a
// reconcile is counted and logged, and never ends the process.

import { errorText } from '@penstock/agent/errors'
import type { Logger } from '@penstock/agent/telemetry'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { isNormal, KubeError } from '../kube/client.ts'
import { type Priority, type QueueLines, WorkQueue } from '../kube/work-queue.ts'
import { isInternal, isUnanswered } from './internal-error.ts'

export interface ControllerOptions {
  readonly name: string
  readonly logger: Logger
  readonly metrics: ControllerMetrics
  readonly signal: AbortSignal
  readonly workers?: number
  /** Maximum number of workers for periodic checks; three quarters of all if not given. */
  readonly maxResyncs?: number
  /** The owner of a key, for taking turns; all keys are in one line if not given. */
  readonly lines?: QueueLines
  /** Compares the observed with the desired state and writes the difference. Returns the milliseconds until the next check, if known. */
  reconcile(key: string, signal: AbortSignal): Promise<number | undefined>
  /** Reports an unexpected error in the reconcile of an object, or one that repeats. */
  failed?(key: string, error: unknown): void
}

const defaultWorkers = 4
const reconcileTimeoutMs = 60_000
/** Other errors than unexpected ones are reported after this many failures in a row, which take a second or more. */
const maxSilentFailures = 8
/** Failures of the API server say nothing about a key, so a long outage must not leave a long wait. */
const maxUnansweredMs = 30_000
/** A periodic check of everything, only as a safety net. */
const resyncMs = 10 * 3_600_000

export class Controller implements AsyncDisposable {
  readonly queue: WorkQueue
  readonly #options: ControllerOptions
  readonly #workers: Promise<void>[] = []
  readonly #onAbort = () => this.queue.close()
  #resync: NodeJS.Timeout | undefined

  constructor(options: ControllerOptions) {
    this.#options = options
    const { lines, workers = defaultWorkers, maxResyncs = Math.max(1, Math.floor(workers * 0.75)) } = options
    this.queue = new WorkQueue({ maxResyncs, ...(lines === undefined ? {} : { lines }) })
    options.metrics.watch(options.name, this.queue)
  }

  add(key: string, priority: Priority = 'user'): void {
    this.queue.add(key, priority)
  }

  /** Starts working. `keys` are checked again about every ten hours. */
  start(keys: () => Iterable<string>): this {
    const { workers = defaultWorkers, signal } = this.#options
    signal.addEventListener('abort', this.#onAbort)
    for (let worker = 0; worker < workers; worker++) this.#workers.push(this.#work())
    const again = () => {
      this.#resync = setTimeout(
        () => {
          for (const key of keys()) this.queue.add(key, 'resync')
          again()
        },
        resyncMs * (1 + Math.random() * 0.2),
      )
      this.#resync.unref()
    }
    again()
    return this
  }

  /** Accepts no more keys and waits for those in progress. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#resync)
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    this.queue.close()
    await Promise.all(this.#workers)
  }

  async #work(): Promise<void> {
    const { name, logger, metrics, signal } = this.#options
    for (;;) {
      const key = await this.queue.next()
      if (key === undefined) return
      const started = performance.now()
      let result: 'success' | 'error' | 'requeue' | 'requeue_after' = 'success'
      try {
        const limit = AbortSignal.any([signal, AbortSignal.timeout(reconcileTimeoutMs)])
        const afterMs = await this.#options.reconcile(key, limit)
        this.queue.forget(key)
        if (afterMs !== undefined) {
          result = 'requeue_after'
          this.queue.addAfter(key, afterMs, 'resync')
        }
      } catch (error) {
        if (signal.aborted) return
        result = isNormal(error) ? 'requeue' : 'error'
        if (result === 'error') {
          metrics.errors.inc({ controller: name })
          if (!(error instanceof KubeError)) metrics.panics.inc({ controller: name })
          const isLasting = this.queue.failuresOf(key) >= maxSilentFailures
          if (isInternal(error) || isLasting) this.#options.failed?.(key, error)
        }
        const waitMs = this.queue.retry(key, {
          minMs: error instanceof KubeError ? error.retryAfterMs : undefined,
          maxMs: isUnanswered(error) ? maxUnansweredMs : undefined,
        })
        const facts = { controller: name, key, error: errorText(error), wait_ms: Math.round(waitMs) }
        if (result === 'error') logger.warn(facts, 'A reconcile failed; trying again.')
        else logger.debug(facts, 'Repeating a reconcile.')
      } finally {
        this.queue.done(key)
        metrics.total.inc({ controller: name, result })
        metrics.time.observe({ controller: name }, (performance.now() - started) / 1000)
      }
    }
  }
}

/** Metrics of all controllers, under the names that dashboards for controller-runtime use. */
export class ControllerMetrics {
  readonly total: Counter
  readonly errors: Counter
  readonly panics: Counter
  readonly time: Histogram
  readonly contended: Counter
  readonly #queueTime: Histogram
  readonly #queues = new Map<string, WorkQueue>()

  constructor(registry: Registry) {
    const registers = [registry]
    const labelNames = ['controller']
    const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
    this.total = new Counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Total number of reconciliations per controller.',
      labelNames: ['controller', 'result'],
      registers,
    })
    this.errors = new Counter({
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Total number of reconciliation errors per controller.',
      labelNames,
      registers,
    })
    this.panics = new Counter({
      name: 'controller_runtime_reconcile_panics_total',
      help: 'Total number of reconciliations that ended with an unexpected error, per controller.',
      labelNames,
      registers,
    })
    this.contended = new Counter({
      name: 'penstock_status_contended_total',
      help: 'Corrections of a status that another client keeps changing.',
      registers,
    })
    this.time = new Histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Length of time per reconciliation per controller.',
      labelNames,
      buckets,
      registers,
    })
    this.#queueTime = new Histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'How long in seconds an item stays in the queue before a worker takes it.',
      labelNames: ['name', 'controller'],
      buckets,
      registers,
    })
    const queues = this.#queues
    const gauges: readonly (readonly [string, string, (queue: WorkQueue) => number])[] = [
      ['workqueue_depth', 'Current depth of the queue.', (queue) => queue.depth],
      ['workqueue_delayed', 'Items that wait for their time.', (queue) => queue.delayed],
      ['workqueue_adds_total', 'Total number of adds handled by the queue.', (queue) => queue.counts.adds],
      ['workqueue_retries_total', 'Total number of retries handled by the queue.', (queue) => queue.counts.retries],
      [
        'workqueue_longest_running_processor_seconds',
        'How many seconds the longest running worker has been running.',
        (queue) => Math.max(0, ...[...queue.active.values()].map((since) => (performance.now() - since) / 1000)),
      ],
      [
        'controller_runtime_active_workers',
        'Number of currently used workers per controller.',
        (queue) => queue.active.size,
      ],
    ]
    for (const [name, help, value] of gauges) {
      new Gauge({
        name,
        help,
        labelNames: name.startsWith('workqueue') ? ['name', 'controller'] : ['controller'],
        registers,
        collect() {
          for (const [controller, queue] of queues) {
            this.set(name.startsWith('workqueue') ? { name: controller, controller } : { controller }, value(queue))
          }
        },
      })
    }
  }

  watch(name: string, queue: WorkQueue): void {
    this.#queues.set(name, queue)
    queue.onQueued = (seconds) => this.#queueTime.observe({ name, controller: name }, seconds)
  }
}
