// Instruments for the scale measurement: CPU and memory of processes, and the waiting time of authors.

import { readFileSync } from 'node:fs'
import { memoryMiB, processCpu } from '../process-figures.ts'
import type { Api } from './fleet.ts'
import { conditionOf, type OperatorProcess, type PipelineLike, saysOf } from './process.ts'

const all = '/apis/penstock.dev/v1alpha1/pipelines'

interface Change {
  readonly at: number
  readonly generation: number
}

/** Watches Pipelines, and measures the time from a change until the operator has accepted its generation. */
export class Stopwatch {
  readonly #open = new Map<string, Change>()
  readonly #seen = new Map<string, number>()
  /** Number of lists of all objects, during which no change is noticed. */
  lists = 0
  /** The response times of the API server for authors in milliseconds. */
  readonly answered: number[] = []
  readonly times: { readonly at: number; readonly tookMs: number }[] = []

  get pending(): number {
    return this.#open.size
  }

  start(key: string, change: Change): void {
    if ((this.#seen.get(key) ?? 0) >= change.generation) this.#take(change)
    else this.#open.set(key, change)
  }

  #take({ at }: Change): void {
    this.times.push({ at, tookMs: performance.now() - at })
  }

  /** A list of thousands of objects takes seconds, in which no change is noticed. So an ended watch is resumed at its version. */
  async follow(api: Api, signal: AbortSignal): Promise<void> {
    let version: string | undefined
    while (!signal.aborted) {
      try {
        version = await this.#watch(api, version ?? (await this.#list(api)), signal)
      } catch {
        // The server is overloaded, or the test ends. The next list shows missed changes.
        version = undefined
        await new Promise((done) => setTimeout(done, 500))
      }
    }
  }

  async #list(api: Api): Promise<string> {
    this.lists++
    const list = await api.get<{ metadata: { resourceVersion: string }; items: readonly PipelineLike[] }>(all)
    for (const item of list.items) this.#see(item)
    return list.metadata.resourceVersion
  }

  /** Returns the version to resume from; undefined if it has expired. */
  async #watch(api: Api, from: string, signal: AbortSignal): Promise<string | undefined> {
    let version = from
    const query = `?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`
    const answer = await fetch(api.url + all + query, { signal })
    if (!answer.ok) return undefined
    let rest = ''
    for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + part).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const { type, object } = JSON.parse(line) as { type: string; object: PipelineLike }
        if (type === 'ERROR') return undefined
        version = object.metadata.resourceVersion
        if (type !== 'BOOKMARK') this.#see(object)
      }
    }
    return version
  }

  #see(object: PipelineLike): void {
    const { name, namespace } = object.metadata
    if (saysOf(object, 'Accepted') !== 'True Valid') return
    const generation = conditionOf(object, 'Accepted')?.observedGeneration ?? 0
    const key = `${namespace}/${name}`
    this.#seen.set(key, generation)
    const change = this.#open.get(key)
    if (change === undefined || generation < change.generation) return
    this.#open.delete(key)
    this.#take(change)
  }
}

const stage =
  /^(workqueue_queue_duration|controller_runtime_reconcile_time)_seconds_(sum|count)(\{[^}]*controller="(?:pipeline|status)"[^}]*\}) ([\d.e+-]+)/gm

/** The resource use of an operator process. */
export class OperatorMeter {
  readonly #operator: OperatorProcess
  /** The last values, because a killed process does not respond. */
  requests = new Map<string, number>()
  /** Sums and counts of queue and reconcile times by name. */
  stages = new Map<string, number>()
  peakMiB = 0

  constructor(operator: OperatorProcess) {
    this.#operator = operator
  }

  /** Reads memory figures from the kernel. Reads requests and queues only on demand, because they cost the operator time. */
  async look(isThorough = false): Promise<void> {
    if (!this.#operator.running) return
    this.peakMiB = peakOf(treeOf(this.#operator.pid))
    if (!isThorough) return
    const text = await this.#operator.get('/metrics').catch(() => '')
    if (text === '') return
    const sums = new Map<string, number>()
    const add = (name: string, value: number) => sums.set(name, (sums.get(name) ?? 0) + value)
    for (const [, labels = '', value] of text.matchAll(/^rest_client_requests_total\{([^}]*)\} (\d+)/gm))
      add(/method="(\w+)"/.exec(labels)?.[1] ?? '', Number(value))
    this.requests = sums
    this.stages = new Map(
      [...text.matchAll(stage)].map(([, what, part, labels = '', value]) => {
        const name = /controller="(pipeline|status)"/.exec(labels)?.[1]
        return [`${name} ${what === 'workqueue_queue_duration' ? 'waits' : 'works'} ${part}`, Number(value)]
      }),
    )
  }

  /** CPU time in seconds, including compiler processes; 0 for an ended process. */
  cpu(): number {
    return this.#operator.running ? treeOf(this.#operator.pid).reduce((sum, pid) => sum + processCpu(pid), 0) : 0
  }
}

/** A process and its child processes. */
export function treeOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return [pid, ...children]
}

/**
 * The peak memory of processes in MiB, as the cgroup of a pod counts it: their own pages, and file pages once, because all of them run the
 * same program and share its pages.
 */
function peakOf(pids: readonly number[]): number {
  const figures = pids.map((pid) => {
    const files = memoryMiB(pid, 'RssFile')
    return { own: memoryMiB(pid, 'VmHWM') - files, files }
  })
  return figures.reduce((sum, { own }) => sum + own, 0) + Math.max(...figures.map(({ files }) => files))
}

/** The share of a core that a busy thread gets, measured in many short periods. */
export class Share {
  #cpuMs = 0
  #wallMs = 0

  take(): void {
    const begun = performance.now()
    const { user, system: kernel } = process.cpuUsage()
    let used = 0
    while (used < 5) {
      const now = process.cpuUsage()
      used = (now.user + now.system - user - kernel) / 1000
    }
    this.#cpuMs += used
    this.#wallMs += performance.now() - begun
  }

  get percent(): number {
    return (100 * this.#cpuMs) / this.#wallMs
  }
}
