// Leader election: only one of the running processes writes. A worker thread renews the Lease, so a busy main thread does not lose it.
// Before each write the main thread checks the time of the last renewal, so that a suspended process does not write on an old claim
// after it resumes. Hand-written, because @kubernetes/client-node has no leader election.

import { Worker } from 'node:worker_threads'
import { leaseTimes } from '@penstock/agent/kube'
import { threadEnvironment, workerFile } from '@penstock/agent/program'
import type { Logger } from '@penstock/agent/telemetry'
import type { KubeConnection } from './connection.ts'
import type { ElectionMessage, ElectionSettings } from './leader-worker.ts'

export interface LeaderOptions {
  readonly connection: KubeConnection
  readonly namespace: string
  readonly name: string
  /** This process's identity, unique for each process. */
  readonly identity: string
  readonly logger: Logger
  /** The claim is lost, or could not be confirmed in time: this process must exit. */
  readonly onLost: () => void
  readonly leaseMs?: number
  readonly renewDeadlineMs?: number
  readonly retryMs?: number
}

export class LeaderElection implements AsyncDisposable {
  readonly #options: Required<LeaderOptions>
  readonly #worker: Worker
  /** When the claim was last confirmed, on the monotonic clock; 0: not the leader. Written by the worker. */
  readonly #confirmed = new BigInt64Array(new SharedArrayBuffer(8))
  readonly #elected = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  readonly #access: Disposable
  #leader: string | undefined
  #closing = false
  #lost = false

  constructor(options: LeaderOptions) {
    this.#options = { ...leaseTimes, ...options }
    const { connection, namespace, name, identity, leaseMs, renewDeadlineMs, retryMs } = this.#options
    const workerData: ElectionSettings = {
      access: connection.access,
      namespace,
      name,
      identity,
      leaseMs,
      renewDeadlineMs,
      retryMs,
      confirmed: this.#confirmed,
    }
    this.#worker = new Worker(workerFile('leader-worker', import.meta.url), { workerData, env: threadEnvironment() })
    this.#worker.on('message', (message: ElectionMessage) => this.#hear(message))
    this.#worker.on('error', (error) => {
      this.#options.logger.error({ error }, 'The thread of the leader election failed.')
      this.#lose()
    })
    this.#worker.on('exit', () => {
      this.#ended.resolve()
      this.#lose()
    })
    this.#access = connection.onAccess((access) => this.#worker.postMessage({ access }))
  }

  /** Whether this process may write at this moment. */
  get leads(): boolean {
    const at = Atomics.load(this.#confirmed, 0)
    if (at === 0n) return false
    return Number(process.hrtime.bigint() - at) / 1e6 < this.#options.renewDeadlineMs
  }

  /** Identity of the leader in the Lease. */
  get leader(): string | undefined {
    return this.#leader
  }

  /** Resolves when this process becomes the leader; may never resolve. */
  async elected(signal: AbortSignal): Promise<boolean> {
    const aborted = new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await Promise.race([this.#elected.promise, aborted])
    return !signal.aborted
  }

  /** Releases the claim, so that the next leader need not wait for its expiry. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing) return
    this.#closing = true
    this.#access[Symbol.dispose]()
    this.#worker.postMessage({ release: true })
    const limit = setTimeout(() => void this.#worker.terminate(), 5_000)
    await this.#ended.promise
    clearTimeout(limit)
  }

  #hear(message: ElectionMessage): void {
    const { logger, identity } = this.#options
    switch (message.type) {
      case 'elected':
        logger.info({ identity }, 'This process leads.')
        this.#elected.resolve()
        return
      case 'leader':
        this.#leader = message.leader
        if (message.leader !== identity) logger.info({ leader: message.leader }, 'Another process leads.')
        return
      case 'failed':
        logger.warn({ error: message.error }, 'Could not read or write the Lease; trying again.')
        return
      case 'lost':
        logger.error({ error: message.error }, 'The leadership is lost.')
        this.#lose()
    }
  }

  #lose(): void {
    Atomics.store(this.#confirmed, 0, 0n)
    if (this.#closing || this.#lost) return
    this.#lost = true
    // This thread is responsive, so the process exits gracefully without the worker.
    void this.#worker.terminate()
    this.#options.onLost()
  }
}
