// Runs `penstock operator` as a process, and causes faults: kills it, cuts its connection to the API server, kills and restarts the API server,
// compacts etcd.

import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Cluster } from '../cluster/cluster.ts'
import { restAfter, root, until, within } from '../command.ts'
import { memoryMiB } from '../process-figures.ts'
import { programOf } from '../program.ts'

export const system = 'penstock-system'
export const apiVersion = 'penstock.dev/v1alpha1'

export interface OperatorOptions {
  readonly kubeconfig: string
  /** Port for heartbeats; by default, it does not listen. Agents know it, so a successor must use the same port. */
  readonly heartbeats?: number
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** The interval of reports and figures, short enough for tests. */
const periods = ['--heartbeat-period', '5s', '--status-period', '5s']

/** In a pod with a limit of 512 MiB, V8 uses half of it for its heap. */
const heap = '--max-old-space-size=256'

/** Additional flags for Node, such as for profiling. */
const nodeFlags = (process.env['PENSTOCK_TEST_NODE_FLAGS'] ?? '').split(' ').filter((flag) => flag !== '')

export class OperatorProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #ended: Promise<number | null>
  /** Its log so far. */
  log = ''

  private constructor(child: ChildProcess) {
    this.#child = child
    child.stderr?.setEncoding('utf8').on('data', (part: string) => {
      this.log += part
    })
    this.#ended = new Promise((done) => child.once('close', (code) => done(code)))
  }

  /** Starts it without waiting until it is ready. Several operators can run in parallel. */
  static start({ kubeconfig, heartbeats, args = [], env = {} }: OperatorOptions): OperatorProcess {
    const flags = ['--kubeconfig', kubeconfig, '--namespace', system, '--http-address', '127.0.0.1:0']
    const fast = ['--kube-qps', '500', '--kube-burst', '1000', ...periods]
    const reports =
      heartbeats === undefined
        ? []
        : ['--heartbeat-address', `127.0.0.1:${heartbeats}`, '--heartbeat-url', heartbeatUrl(heartbeats)]
    const { command, args: main, env: own } = programOf('operator')
    const given = [...nodeFlags, heap, ...main, 'operator', ...flags, ...fast, ...reports, ...args]
    const child = spawn(command, given, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...own, ...env },
    })
    return new OperatorProcess(child)
  }

  get pid(): number {
    return this.#child.pid as number
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Waits until all of its caches are synced and it is the leader. */
  async leading(): Promise<this> {
    await this.logged('All controllers run.')
    return this
  }

  async logged(message: string): Promise<void> {
    await until(`"${message}" in the log of the operator`, 120_000, async () => {
      if (this.log.includes(message)) return true
      if (!this.running) throw new Error(`The operator has ended: ${this.log.slice(-2000)}`)
      return false
    })
  }

  /** The response of one of its HTTP endpoints. */
  async get(path: string): Promise<string> {
    const port = /"port":(\d+)/.exec(this.log)?.[1]
    if (port === undefined) throw new Error('The operator has no port yet.')
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    return `${answer.status} ${await answer.text()}`
  }

  /** Number of its write requests to the API server, from its own metrics. */
  async writes(): Promise<number> {
    const text = await this.get('/metrics')
    let sum = 0
    for (const [, labels = '', value] of text.matchAll(/^rest_client_requests_total\{([^}]*)\} (\d+)/gm)) {
      if (!labels.includes('method="GET"')) sum += Number(value)
    }
    return sum
  }

  /**
   * Its write requests to the API server, from its debug log, without Lease renewals and reviews.
   */
  changes(): readonly string[] {
    return this.log
      .split('\n')
      .map((line) => /"method":"(?!GET)([A-Z]+)".*?"path":"([^"]+)"/.exec(line))
      .filter((match) => match !== null)
      .map(([, method, path]) => `${method} ${path}`)
      .filter((change) => !/\/(leases|tokenreviews|subjectaccessreviews)\b/.test(change))
  }

  /** Number of heartbeats that it has accepted. */
  async heard(): Promise<number> {
    const text = await this.get('/metrics')
    return Number(/^penstock_heartbeats_total\{result="taken"\} (\d+)/m.exec(text)?.[1] ?? 0)
  }

  /** Waits until its queues have been empty for some seconds. */
  async idle(): Promise<void> {
    let quiet = 0
    await until('the operator to be idle', 180_000, async () => {
      const text = await this.get('/metrics')
      const busy = [...text.matchAll(/^(?:workqueue_depth|controller_runtime_active_workers)\{[^}]*\} (\d+)/gm)]
      // A delayed status update is still to be written.
      busy.push(...text.matchAll(/^workqueue_delayed\{[^}]*controller="status"[^}]*\} (\d+)/gm))
      quiet = busy.length > 0 && busy.every(([, value]) => value === '0') ? quiet + 1 : 0
      return quiet >= 15
    })
  }

  /** Current and peak resident memory in MiB. */
  memory(): { readonly now: number; readonly peak: number } {
    return { now: memoryMiB(this.pid, 'VmRSS'), peak: memoryMiB(this.pid, 'VmHWM') }
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Stops it as Kubernetes does, and returns the exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM')
    return this.ended()
  }

  ended(): Promise<number | null> {
    return this.#ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.running) await this.kill()
  }
}

export const heartbeatUrl = (port: number) => `http://127.0.0.1:${port}`

/** Waits until a check passes; otherwise fails with its last error. */
export async function eventually<T>(look: () => Promise<T> | T, limitMs = 60_000): Promise<T> {
  const end = Date.now() + limitMs
  for (;;) {
    const startedAt = performance.now()
    try {
      return await look()
    } catch (error) {
      if (Date.now() > end) throw error
      await restAfter(startedAt)
    }
  }
}

/** Creates the setup of all operator tests: CRDs, namespaces and an Agent that runs everything. */
export async function prepare(cluster: Cluster, ...namespaces: readonly string[]): Promise<void> {
  await cluster.kubectl(['apply', '-k', join(root, 'crds')])
  await cluster.kubectl(['wait', '--for', 'condition=Established', 'crd', '-l', '!none', ...within(60)])
  await cluster.apply(
    ...[system, ...namespaces].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
  )
  await cluster.apply({
    apiVersion,
    kind: 'Agent',
    metadata: { name: 'node', namespace: system },
    spec: { mode: 'Node', pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } } },
  })
}

/** Writes a kubeconfig for a ServiceAccount, by default in the operator's namespace. */
export async function signIn(cluster: Cluster, account: string, file: string, namespace = system): Promise<void> {
  const token = (await cluster.kubectl(['create', 'token', account, '-n', namespace])).trim()
  const config = JSON.parse(await cluster.kubectl(['config', 'view', '--raw', '--minify', '--flatten', '-o', 'json']))
  for (const user of config.users) user.user = { token }
  writeFileSync(file, JSON.stringify(config))
}

/** Kills the API server, calls the given function, and restarts the API server with the same arguments. */
export async function restartApiServer(cluster: Cluster, between: () => Promise<void> = async () => {}): Promise<void> {
  const file = join(cluster.folder, 'run/kube-apiserver.pid')
  const pid = Number(readFileSync(file, 'utf8'))
  const [name = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  process.kill(pid, 'SIGKILL')
  await until('the API server to end', 20_000, async () => {
    const state = await readState(pid)
    return state === undefined || state === 'Z'
  })
  await between()
  const logFile = join(cluster.folder, 'log/kube-apiserver.log')
  const log = openSync(logFile, 'a')
  let child: ChildProcess | undefined
  await until('the API server to be ready', 100_000, async () => {
    if (child?.exitCode !== null) {
      // As in production, restart it when it ends, because it gives up when etcd is slow.
      child = spawn(name, args, { detached: true, stdio: ['ignore', log, log] })
      child.unref()
      writeFileSync(file, String(child.pid))
    }
    return (await cluster.kubectl(['get', '--raw', '/readyz'])) === 'ok'
  }).catch((error) => {
    throw new Error(`The API server does not recover: ${readFileSync(logFile, 'utf8').slice(-3000)}`, {
      cause: error,
    })
  })
}

async function readState(pid: number): Promise<string | undefined> {
  try {
    return /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  } catch {
    return undefined // it has ended
  }
}

/** Compacts etcd to the newest version, which also happens every five minutes. */
export async function compact(cluster: Cluster): Promise<void> {
  const etcd = (path: string, body: object) =>
    new Promise<{ header: { revision: string } }>((done, failed) => {
      const sent = request({ socketPath: join(cluster.folder, 'run/etcd.sock'), path, method: 'POST' }, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        answer.on('end', () => (answer.statusCode === 200 ? done(JSON.parse(text)) : failed(new Error(text))))
      })
      sent.on('error', failed)
      sent.end(JSON.stringify(body))
    })
  const { header } = await etcd('/v3/kv/range', { key: 'AA==', keys_only: true, limit: '1' })
  await etcd('/v3/kv/compaction', { revision: header.revision, physical: true })
}

/** A proxy to the API server that can be interrupted, with a kubeconfig for it. */
export class CutWire implements AsyncDisposable {
  readonly kubeconfig: string
  readonly #server: Server
  readonly #target: { readonly host: string; readonly port: number }
  readonly #sockets = new Set<Socket>()
  #cut = false

  private constructor(server: Server, target: { host: string; port: number }, kubeconfig: string) {
    this.#server = server
    this.#target = target
    this.kubeconfig = kubeconfig
    server.on('connection', (socket) => this.#join(socket))
  }

  static async start(cluster: Cluster): Promise<CutWire> {
    const text = readFileSync(cluster.kubeconfig, 'utf8')
    const [, host = '', port = ''] = /https:\/\/([\d.]+):(\d+)/.exec(text) ?? []
    const server = createServer()
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const address = server.address()
    const own = typeof address === 'object' && address !== null ? address.port : 0
    const file = join(cluster.folder, `wire-${own}.kubeconfig`)
    writeFileSync(file, text.replace(`https://${host}:${port}`, `https://${host}:${own}`))
    return new CutWire(server, { host, port: Number(port) }, file)
  }

  cut(): void {
    this.#cut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  restore(): void {
    this.#cut = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((done) => this.#server.close(done))
  }

  #join(socket: Socket): void {
    if (this.#cut) {
      socket.destroy()
      return
    }
    const far = connect(this.#target)
    for (const [one, other] of [
      [socket, far],
      [far, socket],
    ] as const) {
      this.#sockets.add(one)
      one.on('error', () => other.destroy()) // the other end must see a lost connection
      one.on('close', () => {
        this.#sockets.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  }
}

export interface ConditionLike {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number
  readonly lastTransitionTime: string
}

export interface PipelineLike {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly generation: number
    readonly resourceVersion: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly ConditionLike[] } & Readonly<
    Record<string, unknown>
  >
}

/** A condition for the newest generation; undefined while it is for an older one. */
export function conditionOf(object: PipelineLike | undefined, type: string): ConditionLike | undefined {
  if (object?.status?.observedGeneration !== object?.metadata.generation) return undefined
  return object?.status?.conditions?.find((condition) => condition.type === type)
}

/** The text of one condition: `False CompileFailed`. */
export const saysOf = (object: PipelineLike | undefined, type: string): string | undefined => {
  const condition = conditionOf(object, type)
  return condition === undefined ? undefined : `${condition.status} ${condition.reason}`
}
