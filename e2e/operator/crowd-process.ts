// Runs the crowd of agents in a separate process, so that its work does not count for the measuring process.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Cluster } from '../cluster/cluster.ts'
import { Crowd, type CrowdOptions } from './crowd.ts'
import { Api } from './fleet.ts'

interface Order {
  readonly cluster: Pick<Cluster, 'kubeconfig' | 'kubectlPath'>
  readonly options: CrowdOptions
}

export interface CrowdFacts {
  /** Number of responses by status. */
  readonly answers: readonly (readonly [number, number])[]
  readonly longestMs: number
  readonly unheard: number
  readonly streamed: Crowd['streamed']
}

type Wish = 'facts' | 'restart' | 'end'

export class CrowdProcess implements AsyncDisposable {
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  /** Starts the agents. Resolves when all have a pod and a token. */
  static async start(cluster: Order['cluster'], options: CrowdOptions): Promise<CrowdProcess> {
    const file = fileURLToPath(import.meta.url)
    const child = fork(file, [], { execArgv: ['--conditions=source'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const crowd = new CrowdProcess(child)
    const { kubeconfig, kubectlPath } = cluster
    await crowd.#ask({ cluster: { kubeconfig, kubectlPath }, options })
    return crowd
  }

  get pid(): number {
    return this.#child.pid as number
  }

  facts(): Promise<CrowdFacts> {
    return this.#ask('facts')
  }

  /** Replaces the pod of the first agent. */
  async restart(): Promise<void> {
    await this.#ask('restart')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = new Promise((done) => this.#child.once('exit', done))
    this.#child.send('end' satisfies Wish)
    await ended
  }

  /** Allows one request at a time. */
  #ask(wish: Wish | Order): Promise<CrowdFacts> {
    return new Promise((resolve, reject) => {
      const end = () => reject(new Error('The process of the agents has ended.'))
      this.#child.once('exit', end)
      this.#child.once('message', (facts: CrowdFacts) => {
        this.#child.off('exit', end)
        resolve(facts)
      })
      this.#child.send(wish)
    })
  }
}

/** The main function of the process. */
async function serve(): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { promise: ended, resolve: end, reject } = Promise.withResolvers<void>()
  let crowd: Crowd | undefined
  const answer = async (wish: Wish | Order) => {
    if (wish === 'end') return end()
    if (typeof wish === 'object') {
      const api = stack.use(await Api.start(wish.cluster))
      crowd = stack.use(await Crowd.start(api, wish.options))
    }
    if (wish === 'restart') await crowd?.restart(0)
    const none = { bundles: 0, names: 0, bytes: 0 }
    const { answers = new Map(), longestMs = 0, unheard = 0, streamed = none } = crowd ?? {}
    const facts: CrowdFacts = { answers: [...answers], longestMs, unheard, streamed }
    process.send?.(facts)
  }
  process.on('message', (wish: Wish | Order) => void answer(wish).catch(reject))
  // The measuring process has ended.
  process.once('disconnect', end)
  await ended
}

if (import.meta.main) {
  await serve()
  if (process.connected) process.disconnect?.()
}
