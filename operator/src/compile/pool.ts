// Compiles Pipelines in separate processes, within limits of time and memory. Namespaces take turns, so no namespace waits for all
// Pipelines of another one. A Pipeline that exceeds the limits ends its process, and is not compiled again until it changes.

import { createHash } from 'node:crypto'
import { canonicalJson } from '@penstock/agent/bundle'
import type { Logger } from '@penstock/agent/telemetry'
import { isTooDeep, maxDepth } from '../api/depth.ts'
import { CompileProcess, type JobOutcome } from './compile-process.ts'
import { FairQueue } from './fair-queue.ts'
import type { CompileJob, CompileResult } from './job.ts'
import { MemoryQuarantine, type Quarantine, type Refusal } from './quarantine.ts'

export interface CompileLimits {
  /** Bytes of a spec, as JSON. */
  readonly specBytes: number
  /** CPU time limit of a compile; the tests have their own. */
  readonly compileMs: number
  readonly testsMs: number
  /** On an overloaded machine, CPU time passes slowly: the wait ends after this multiple of the limit. */
  readonly patience: number
  /** Memory of any kind that a process may use for Pipelines, in addition to the library. */
  readonly memoryMb: number
  /** Limit of its heap, including the library. */
  readonly heapMb: number
}

export const compileLimits: CompileLimits = {
  specBytes: 256 * 1024,
  compileMs: 2_000,
  testsMs: 5_000,
  patience: 10,
  memoryMb: 128,
  heapMb: 128,
}

export interface CompilePoolOptions {
  readonly processes?: number
  readonly limits?: CompileLimits
  readonly quarantine?: Quarantine
  readonly logger?: Logger
  /** Program of the process; a different one in tests. */
  readonly file?: URL
}

/** Message for a spec that is not compiled at all. */
export function specTooLong(spec: unknown, { specBytes }: Pick<CompileLimits, 'specBytes'>): string | undefined {
  if (isTooDeep(spec)) return `it is nested deeper than ${maxDepth} levels`
  const bytes = Buffer.byteLength(JSON.stringify(spec) ?? '')
  if (bytes <= specBytes) return undefined
  return `it has ${bytes} bytes as JSON, and the limit is ${specBytes}; divide it into several Pipelines, or its data into fewer programs`
}

/** Maximum number of waiting jobs: reconciles are few at a time, so only reviews come near it. */
const waiting = { perKey: 64, total: 1_024 }
/** Suspects are compiled after this much time without other work. */
const quietMs = 1_000

interface Task {
  readonly job: CompileJob
  readonly hash: string
  readonly isSuspect: boolean
  readonly resolve: (result: CompileResult) => void
  readonly reject: (error: Error) => void
}

export class CompilePool implements AsyncDisposable {
  readonly #limits: CompileLimits
  #quarantine: Quarantine
  readonly #logger: Logger | undefined
  readonly #waiting = new FairQueue<Task>(waiting)
  /** Pipelines that were being compiled when an operator stopped: they are compiled when no other work waits. */
  readonly #suspects = new FairQueue<Task>(waiting)
  readonly #processes: readonly CompileProcess[]
  readonly #busy = new Set<CompileProcess>()
  readonly #records = new Set<Promise<void>>()
  #idleSince: number | undefined
  #quiet: NodeJS.Timeout | undefined
  #closed = false

  constructor({ processes = 1, limits = compileLimits, quarantine, logger, file }: CompilePoolOptions = {}) {
    this.#limits = limits
    this.#quarantine = quarantine ?? new MemoryQuarantine()
    this.#logger = logger
    this.#processes = Array.from({ length: processes }, () => new CompileProcess(limits, file))
  }

  compile(job: CompileJob): Promise<CompileResult> {
    for (const object of [job.pipeline, ...job.resources]) {
      const tooLong = specTooLong((object as { readonly spec?: unknown }).spec, this.#limits)
      if (tooLong === undefined) continue
      const whose = object === job.pipeline ? '' : `that of ${object.kind} "${object.metadata.name}": `
      return Promise.resolve(refused({ reason: 'InvalidConfig', path: 'spec', message: `${whose}${tooLong}` }))
    }
    if (this.#closed) return Promise.reject(new Error('The compiler is closed.'))
    const hash = hashOf(job)
    const known = this.#quarantine.refusalOf(hash)
    if (known !== undefined) return Promise.resolve(refused(known))
    return new Promise((resolve, reject) => {
      const isSuspect = this.#quarantine.isSuspect(hash)
      const line = isSuspect ? this.#suspects : this.#waiting
      const task = { job, hash, isSuspect, resolve, reject }
      line
        .add(job.pipeline.metadata.namespace ?? '', task)
        ?.reject(new Error('Too many Pipelines of this namespace wait to be compiled; try again in a few seconds.'))
      this.#hand()
    })
  }

  /** Sets the quarantine to use: only the leader may store it. */
  remember(quarantine: Quarantine): void {
    this.#quarantine = quarantine
  }

  /** Starts the processes in advance. Otherwise the first author waits seconds for the library to load. */
  warm(): void {
    for (const process of this.#processes) process.warm()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearTimeout(this.#quiet)
    for (const { reject } of [...this.#waiting.clear(), ...this.#suspects.clear()])
      reject(new Error('The compiler is closed.'))
    await Promise.all([...this.#processes.map((process) => process.close()), ...this.#records])
  }

  #hand(): void {
    for (const process of this.#processes) {
      if (this.#busy.has(process) || this.#closed) continue
      const task = this.#waiting.take() ?? this.#suspect()
      if (task === undefined) return
      this.#idleSince = undefined
      this.#busy.add(process)
      this.#run(process, task)
        .then(task.resolve, task.reject)
        .finally(() => {
          this.#busy.delete(process)
          this.#hand()
        })
    }
  }

  /** One suspect at a time, without other work: if it ends the operator, the culprit is known. */
  #suspect(): Task | undefined {
    if (this.#busy.size > 0 || this.#suspects.size === 0) return undefined
    const now = performance.now()
    this.#idleSince ??= now
    const waitMs = this.#idleSince + quietMs - now
    if (waitMs <= 0) return this.#suspects.take()
    clearTimeout(this.#quiet)
    this.#quiet = setTimeout(() => this.#hand(), waitMs)
    return undefined
  }

  async #run(process: CompileProcess, { job, hash, isSuspect }: Task): Promise<CompileResult> {
    const id = `${job.pipeline.kind} ${job.pipeline.metadata.namespace ?? ''}/${job.pipeline.metadata.name}`
    if (isSuspect) await this.#quarantine.begin(hash, id)
    let isRecorded = false
    // An expensive compile is recorded, in case the whole operator ends with it.
    const onHeavy = () => {
      if (!isRecorded) this.#note(this.#quarantine.begin(hash, id))
      isRecorded = true
    }
    try {
      const wasUsed = process.isUsed
      let outcome = await process.run(job, onHeavy)
      // Memory of earlier jobs in a process must not count against this job, and an outside cause, such as a pod with too little
      // memory, may have ended it: the job gets a new process.
      const isDoubtful =
        outcome.type === 'failed' || (outcome.type === 'killed' && ['memory', 'crash'].includes(outcome.by))
      if (isDoubtful) process.discard()
      if (isDoubtful && (wasUsed || (outcome.type === 'killed' && !outcome.isOwn))) {
        outcome = await process.run(job, onHeavy)
        if (outcome.type === 'failed') process.discard()
      }
      const refusal = this.#refusalOf(outcome, id)
      if (refusal === undefined) return (outcome as JobOutcome & { type: 'done' }).result
      // On an overloaded machine, a timeout shows nothing about the job.
      if (outcome.type === 'killed' && (outcome.isOwn || outcome.by === 'crash'))
        this.#quarantine.keep(hash, id, refusal)
      return refused(refusal)
    } finally {
      if (isRecorded || isSuspect) this.#note(this.#quarantine.end(hash))
    }
  }

  /** Storing a record only matters after a restart, and the API server may be slow: the next job does not wait for it. */
  #note(record: Promise<void>): void {
    this.#records.add(record)
    void record.finally(() => this.#records.delete(record))
  }

  /** Undefined for a completed job. */
  #refusalOf(outcome: JobOutcome, id: string): Refusal | undefined {
    if (outcome.type === 'done') return undefined
    if (outcome.type === 'failed') {
      this.#logger?.error({ pipeline: id, error: outcome.error }, 'The compiler failed.')
      // Any other error may quote its input.
      const message = `the compiler failed (${outcome.name}); the operator's log has the details. Change the Pipeline, and report this`
      return { reason: 'CompileFailed', path: 'spec', message }
    }
    this.#logger?.warn({ pipeline: id, limit: outcome.by }, 'A compile was stopped.')
    const { compileMs, testsMs, memoryMb } = this.#limits
    const again =
      outcome.isOwn || outcome.by === 'crash'
        ? '. The operator compiles it again when it changes: make it smaller, or divide it'
        : ''
    switch (outcome.by) {
      case 'compile':
        return {
          reason: 'CompileFailed',
          path: 'spec',
          message: `compiling it takes more than ${compileMs / 1000} s of CPU time${again}`,
        }
      case 'tests':
        return { reason: 'TestsFailed', path: 'spec.tests', message: `they take more than ${testsMs / 1000} s${again}` }
      default:
        return {
          reason: 'CompileFailed',
          path: 'spec',
          message: `compiling it takes more than ${memoryMb} MiB of memory${again}`,
        }
    }
  }
}

/** Hash of all inputs of a compile, including the name of the Pipeline. */
function hashOf({ pipeline, resources, policy }: CompileJob): string {
  const retry = pipeline.metadata.annotations?.['penstock.dev/retry']
  const facts = [pipeline, ...resources].map((object) => {
    const { kind, metadata, spec } = object as typeof pipeline
    return [kind, metadata.namespace, metadata.name, spec]
  })
  return createHash('sha256')
    .update(canonicalJson([facts, policy, retry]))
    .digest('hex')
}

function refused({ reason, path, message }: Refusal): CompileResult {
  return {
    artifact: undefined,
    accepted: { status: 'False', reason, message: `${path}: ${message}` },
    resolved: { status: 'Unknown', reason: 'Pending', message: 'It was not compiled.' },
    tests: undefined,
    warnings: [],
    problems: [{ severity: 'error', reason, path, message }],
    diskBufferBytes: 0,
  }
}
