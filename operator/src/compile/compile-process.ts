// A compile process from its owner's perspective: it is started on demand, monitored, and ended when it uses too much time or memory.
// The next job then gets a new process.

import { type ChildProcess, fork } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { threadEnvironment, workerFile } from '@penstock/agent/program'
import type { CompileJob, CompileResult } from './job.ts'
import type { CompileLimits } from './pool.ts'
import type { WorkerMessage } from './worker.ts'

/** How a job ended. */
export type JobOutcome =
  | { readonly type: 'done'; readonly result: CompileResult }
  /** The compiler threw an exception: an internal error, or a refused allocation. */
  | { readonly type: 'failed'; readonly name: string; readonly error: string }
  /** The process was ended because of the job, or ended by itself; `isOwn` if the job is the only possible reason. */
  | { readonly type: 'killed'; readonly by: 'compile' | 'tests' | 'memory' | 'crash'; readonly isOwn: boolean }

const watchMs = 50
/**
 * The kernel refuses allocations before the monitor ends the process; the monitor is for systems where the kernel does
 * not.
 */
const slack = 1.25
/** CPU ticks per second in `/proc`, the same on every Linux. */
const ticksPerSecond = 100

/** Other jobs take some tens of milliseconds, and little memory. */
const heavy = { cpuMs: 400, mb: 48 }

/** Variables that configure Node; no other part of the operator's environment concerns a tenant. */
const variables = ['NODE_ENV', 'MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_', 'TZ', 'LANG']

interface Usage {
  readonly cpuMs: number
  readonly residentMb: number
}

interface Task {
  readonly job: CompileJob
  /** Called once, if the job uses much more than usual. */
  readonly onHeavy: () => void
  readonly resolve: (outcome: JobOutcome) => void
  readonly reject: (error: Error) => void
}

export class CompileProcess {
  readonly #limits: CompileLimits
  readonly #file: URL
  #child: ChildProcess | undefined
  #ready = false
  #isUsed = false
  #isHeavy = false
  #residentAtStart = 0
  #task: Task | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(limits: CompileLimits, file: URL = workerFile('worker', import.meta.url)) {
    this.#limits = limits
    this.#file = file
  }

  run(job: CompileJob, onHeavy: () => void): Promise<JobOutcome> {
    return new Promise((resolve, reject) => {
      this.#task = { job, onHeavy, resolve, reject }
      this.#isHeavy = false
      // The job is sent once the process is ready.
      if (this.#child === undefined) this.#start()
      else if (this.#ready) this.#send()
    })
  }

  /** Whether the process has run a job before. */
  get isUsed(): boolean {
    return this.#isUsed
  }

  /** Ends the process; the next job gets a new one. */
  discard(): void {
    this.#end()
  }

  warm(): void {
    if (this.#child === undefined && !this.#closed) this.#start()
  }

  async close(): Promise<void> {
    this.#closed = true
    const child = this.#child
    const ended = child && new Promise<void>((done) => child.once('exit', () => done()))
    this.#end()
    this.#task?.reject(new Error('The compiler is closed.'))
    this.#task = undefined
    await ended
  }

  #start(): void {
    const { memoryMb, heapMb } = this.#limits
    const file = fileURLToPath(this.#file)
    const own = threadEnvironment()
    const child = fork(file, [String(memoryMb)], {
      env: Object.fromEntries(variables.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]]]))),
      execArgv: [
        ...(file.endsWith('.ts') ? ['--conditions=source'] : []),
        ...['--permission', '--allow-ffi'],
        ...['/proc/self/status', '/usr/share/zoneinfo/*', ...programFolders(file)].map(
          (path) => `--allow-fs-read=${path}`,
        ),
        ...['--disable-warning=ExperimentalWarning', '--disable-warning=SecurityWarning'],
        // A small young generation, because compiles are short and the process stays.
        ...[`--max-old-space-size=${heapMb}`, '--max-semi-space-size=2', '--heap-growing-percent=25'],
      ],
      // Node's output on running out of memory does not help users.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
    })
    this.#child = child
    this.#ready = false
    this.#isUsed = false
    child.on('message', (message: WorkerMessage) => {
      if (this.#child === child) this.#hear(message)
    })
    const gone = (error?: Error) => {
      if (this.#child !== child) return
      this.#child = undefined
      const wasReady = this.#ready
      this.#ready = false
      if (this.#task === undefined) return
      // If a process cannot even start, the job is not the reason.
      if (!wasReady) this.#fail(error ?? new Error('The compile process ended before it could begin.'))
      // Node ends itself with SIGABRT when its heap is full. SIGKILL from outside may mean that the whole pod has too little
      // memory.
      else this.#finish({ type: 'killed', by: 'crash', isOwn: child.signalCode !== 'SIGKILL' })
    }
    child.on('error', gone)
    child.on('exit', () => gone())
  }

  #hear(message: WorkerMessage): void {
    switch (message.type) {
      case 'ready':
        this.#ready = true
        this.#residentAtStart = this.#usage()?.residentMb ?? 0
        if (this.#task !== undefined) this.#send()
        return
      case 'compiled':
        this.#watch('tests', this.#limits.testsMs)
        return
      case 'done':
      case 'failed':
        this.#finish(message)
    }
  }

  #send(): void {
    this.#watch('compile', this.#limits.compileMs)
    this.#child?.send(this.#task?.job as CompileJob)
  }

  /** Ends the process when it has used this much more CPU time, or too much memory. */
  #watch(by: 'compile' | 'tests', limitMs: number): void {
    clearInterval(this.#timer)
    const startedAt = performance.now()
    const cpuAtStart = this.#usage()?.cpuMs
    const limitMb = this.#residentAtStart + this.#limits.memoryMb * slack
    this.#timer = setInterval(() => {
      const usage = this.#usage()
      const elapsed = performance.now() - startedAt
      const used = usage === undefined || cpuAtStart === undefined ? elapsed : usage.cpuMs - cpuAtStart
      const grown = usage === undefined ? 0 : usage.residentMb - this.#residentAtStart
      if (!this.#isHeavy && (used > heavy.cpuMs || grown > heavy.mb)) {
        this.#isHeavy = true
        this.#task?.onHeavy()
      }
      const tooMuch = usage !== undefined && this.#residentAtStart > 0 && usage.residentMb > limitMb
      if (!tooMuch && used < limitMs && elapsed < limitMs * this.#limits.patience) return
      this.#end()
      this.#finish({ type: 'killed', by: tooMuch ? 'memory' : by, isOwn: tooMuch || used >= limitMs })
    }, watchMs)
  }

  /** The kernel's figures for the process; undefined if there are none. */
  #usage(): Usage | undefined {
    const pid = this.#child?.pid
    if (pid === undefined || process.platform !== 'linux') return undefined
    try {
      // The program's name, which may contain any characters, is in parentheses before the other fields.
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const ticks = Number(fields[11]) + Number(fields[12])
      const resident = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
      return { cpuMs: (ticks * 1000) / ticksPerSecond, residentMb: Number(resident ?? 0) / 1024 }
    } catch {
      return undefined // the process has ended, which is reported separately
    }
  }

  #end(): void {
    clearInterval(this.#timer)
    const child = this.#child
    this.#child = undefined
    this.#ready = false
    child?.kill('SIGKILL')
  }

  #finish(outcome: JobOutcome): void {
    clearInterval(this.#timer)
    const task = this.#task
    this.#task = undefined
    this.#isUsed = true
    task?.resolve(outcome)
  }

  #fail(error: Error): void {
    clearInterval(this.#timer)
    const task = this.#task
    this.#task = undefined
    task?.reject(error)
  }
}

/** The folders with everything that the program loads: the repository, or `/app` in the image. Libraries may be linked there. */
function programFolders(file: string): string[] {
  const place = Math.max(file.lastIndexOf('/operator/src/'), file.lastIndexOf('/operator/packed/'))
  const folder = place < 0 ? dirname(file) : file.slice(0, place)
  const libraries = join(folder, 'node_modules')
  const folders = [folder, ...(existsSync(libraries) ? [realpathSync(libraries)] : [])]
  return folders.map((each) => `${each}/*`)
}
