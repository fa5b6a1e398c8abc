// Compiles Pipelines in threads of their own, within limits of time and memory: a Pipeline that takes too much of either is told
// so, and costs nobody else more than the wait for a new thread.

import { Worker } from 'node:worker_threads'
import { threadEnvironment } from '@penstock/agent/cli/compiled'
import { fileBeside } from '@penstock/agent/remap/worker-file'
import type { CompileJob, CompileResult } from './job.ts'
import type { WorkerMessage } from './worker.ts'

export interface CompileLimits {
  /** Bytes of a spec, as JSON. */
  readonly specBytes: number
  /** CPU time of a compile; the tests have theirs. */
  readonly compileMs: number
  readonly testsMs: number
  /** Memory of a thread: the library, and 64 MiB for the Pipeline. */
  readonly memoryMb: number
}

export const compileLimits: CompileLimits = {
  specBytes: 256 * 1024,
  compileMs: 2_000,
  testsMs: 5_000,
  memoryMb: 128,
}

/** What is said of a spec that no thread is given. */
export function specTooLong(spec: unknown, { specBytes }: Pick<CompileLimits, 'specBytes'>): string | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(spec) ?? '')
  if (bytes <= specBytes) return undefined
  return `it has ${bytes} bytes as JSON, and may have ${specBytes}; divide it into several Pipelines, or its data into fewer programs`
}

/** On a machine with more to do than it can, CPU time passes slowly: the wait has an end, too. */
const patience = 10

interface Task {
  readonly job: CompileJob
  readonly resolve: (result: CompileResult) => void
  readonly reject: (error: Error) => void
}

export class CompilePool implements AsyncDisposable {
  readonly #limits: CompileLimits
  readonly #waiting: Task[] = []
  readonly #threads: Thread[] = []
  #closed = false

  constructor(threads = 1, limits: CompileLimits = compileLimits) {
    this.#limits = limits
    for (let index = 0; index < threads; index++) this.#threads.push(new Thread(limits, () => this.#hand()))
  }

  compile(job: CompileJob): Promise<CompileResult> {
    const tooLong = specTooLong(job.pipeline.spec, this.#limits)
    if (tooLong !== undefined) return Promise.resolve(refused('InvalidConfig', `spec: ${tooLong}`))
    if (this.#closed) return Promise.reject(new Error('The compiler is closed.'))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject })
      this.#hand()
    })
  }

  /** Starts the threads before there is anything to do: loading the library takes the first author seconds otherwise. */
  warm(): void {
    for (const thread of this.#threads) thread.warm()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    for (const { reject } of this.#waiting.splice(0)) reject(new Error('The compiler is closed.'))
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }

  #hand(): void {
    for (const thread of this.#threads) {
      if (this.#waiting.length === 0) return
      if (!thread.busy) thread.take(this.#waiting.shift() as Task)
    }
  }
}

class Thread {
  readonly #limits: CompileLimits
  readonly #onFree: () => void
  #worker: Worker | undefined
  #ready = false
  #task: Task | undefined
  #timer: NodeJS.Timeout | undefined
  #cpuAtStart = 0
  #closed = false

  constructor(limits: CompileLimits, onFree: () => void) {
    this.#limits = limits
    this.#onFree = onFree
  }

  get busy(): boolean {
    return this.#task !== undefined
  }

  take(task: Task): void {
    this.#task = task
    // Before it is ready the job is not sent: it is when it is.
    if (this.#worker === undefined) this.#start()
    else if (this.#ready) this.#send()
  }

  warm(): void {
    if (this.#worker === undefined && !this.#closed) this.#start()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#worker?.terminate()
    this.#task?.reject(new Error('The compiler is closed.'))
    this.#task = undefined
  }

  #start(): void {
    const worker = new Worker(fileBeside('worker', import.meta.url), {
      env: threadEnvironment(),
      // A small space for new objects: compiles are short, and the thread stays for ever.
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.memoryMb, maxYoungGenerationSizeMb: 4 },
    })
    this.#worker = worker
    this.#ready = false
    worker.on('message', (message: WorkerMessage) => {
      if (this.#worker === worker) this.#hear(message)
    })
    worker.on('error', (error: Error & { code?: string }) => {
      if (this.#worker !== worker) return
      const tooMuch = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      if (tooMuch) this.#finish(refused('CompileFailed', 'spec: compiling it takes more than 64 MiB of memory'))
      else this.#fail(error)
    })
    worker.on('exit', () => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      if (this.#task !== undefined) this.#fail(new Error('The compile thread has ended.'))
    })
  }

  #hear(message: WorkerMessage): void {
    switch (message.type) {
      case 'ready':
        this.#ready = true
        if (this.#task !== undefined) this.#send()
        return
      case 'compiled':
        this.#limit(
          this.#limits.testsMs,
          'TestsFailed',
          `spec.tests: they take more than ${this.#limits.testsMs / 1000} s`,
        )
        return
      case 'done':
        this.#finish(message.result)
        return
      case 'failed':
        this.#fail(new Error(message.error))
    }
  }

  #send(): void {
    const { compileMs } = this.#limits
    this.#limit(compileMs, 'CompileFailed', `spec: compiling it takes more than ${compileMs / 1000} s of CPU time`)
    this.#worker?.postMessage(this.#task?.job)
  }

  /** Ends the thread when it has used so much CPU time from now on. */
  #limit(limitMs: number, reason: 'CompileFailed' | 'TestsFailed', message: string): void {
    clearTimeout(this.#timer)
    const worker = this.#worker
    const startedAt = performance.now()
    const task = this.#task
    const look = async () => {
      const used = (await cpuMs(worker)) - this.#cpuAtStart
      if (this.#task !== task || this.#worker !== worker) return
      const elapsed = performance.now() - startedAt
      if (used < limitMs && elapsed < limitMs * patience) {
        this.#timer = setTimeout(() => void look(), Math.max(50, limitMs - used))
        return
      }
      this.#worker = undefined
      void worker?.terminate()
      this.#finish(refused(reason, message))
    }
    this.#cpuAtStart = 0
    void cpuMs(worker).then((ms) => {
      this.#cpuAtStart = ms
    })
    this.#timer = setTimeout(() => void look(), limitMs)
  }

  #finish(result: CompileResult): void {
    clearTimeout(this.#timer)
    const task = this.#task
    this.#task = undefined
    task?.resolve(result)
    if (!this.#closed) this.#onFree()
  }

  #fail(error: Error): void {
    clearTimeout(this.#timer)
    const task = this.#task
    this.#task = undefined
    task?.reject(error)
    if (!this.#closed) this.#onFree()
  }
}

/** CPU time of a thread so far; of one that does not answer, on a busy machine, nothing is known: the clock ends it later. */
async function cpuMs(worker: Worker | undefined): Promise<number> {
  if (worker === undefined) return 0
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 500).unref())
  const usage = await Promise.race([worker.cpuUsage().catch(() => undefined), late])
  return usage === undefined ? 0 : (usage.user + usage.system) / 1000
}

function refused(reason: 'InvalidConfig' | 'CompileFailed' | 'TestsFailed', message: string): CompileResult {
  return {
    artifact: undefined,
    accepted: { status: 'False', reason, message },
    resolved: { status: 'Unknown', reason: 'Pending', message: 'It was not looked at.' },
    tests: undefined,
    warnings: [],
    problems: [{ severity: 'error', reason, path: '', message }],
    diskBufferBytes: 0,
  }
}
